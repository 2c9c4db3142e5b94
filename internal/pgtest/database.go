package pgtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Main runs a package's tests with a server. Call it from TestMain and exit
// with what it returns.
func Main(m *testing.M) int {
	if os.Getenv(Variable) != "" {
		return m.Run()
	}
	s, err := Start(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := s.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	if err := os.Setenv(Variable, s.URL()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// Database makes an empty database and gives its URL; it is dropped when the
// test ends.
func Database(t testing.TB) string {
	t.Helper()
	server := os.Getenv(Variable)
	if server == "" {
		t.Fatalf("%s is not set: call pgtest.Main from TestMain", Variable)
	}
	u, err := url.Parse(server)
	if err != nil {
		t.Fatalf("%s is no URL", Variable)
	}
	name := "pawl_" + rand.Text()
	if err := execute(server, `CREATE DATABASE "`+name+`"`); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := execute(server, `DROP DATABASE "`+name+`" WITH (FORCE)`); err != nil {
			t.Error(err)
		}
	})
	u.Path = "/" + name
	return u.String()
}

func execute(server, statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, statement)
	return err
}

func ping(ctx context.Context, server string) error {
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}
