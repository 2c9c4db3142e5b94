// Command certificates is a receiver that issues one certificate for each
// completed course, however often it is told and whenever it is killed: the
// insert of the event, the certificate and the message about it are one
// transaction of its own database (package inbox). With -naive it does what
// most handlers do instead, and issues doubles.
//
//	certificates -db school.db -secret whsec_… -mail https://mail.example.com/messages
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/pawlhq/pawl/inbox"
	"github.com/pawlhq/pawl/webhook"
)

// source is where the events come from, as far as this receiver knows.
const source = "pawl"

// ownTables are the application's own: nothing in them keeps a learner from
// having two certificates, as in most applications.
const ownTables = `CREATE TABLE IF NOT EXISTS certificates (id INTEGER PRIMARY KEY, learner TEXT NOT NULL)`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "certificates:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("certificates", flag.ExitOnError)
	listen := flags.String("listen", "127.0.0.1:0", "address to receive webhooks at")
	file := flags.String("db", "school.db", "the application's database")
	secret := flags.String("secret", os.Getenv("PAWL_ENDPOINT_SECRET"), "signing secret of the endpoint; else $PAWL_ENDPOINT_SECRET")
	mail := flags.String("mail", "", "where messages are posted")
	naive := flags.Bool("naive", false, "handle events as most handlers do")
	if err := flags.Parse(args); err != nil {
		return err
	}
	scheme, _ := webhook.Lookup("standard-webhooks")
	key, err := scheme.ParseKey(*secret)
	if err != nil {
		return fmt.Errorf("-secret: %w", err)
	}
	db, err := sql.Open("sqlite3", "file:"+*file+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_txlock=immediate")
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, ownTables); err != nil {
		return err
	}
	post := &post{url: *mail, client: http.Client{Timeout: time.Second}}
	verify := inbox.Signed(source, scheme, nil, key)
	var handler http.Handler = naively{db, verify, post}
	if !*naive {
		school := inbox.New(inbox.SQL(db, inbox.SQLite), inbox.Options{Lease: 2 * time.Second, Backoff: 50 * time.Millisecond})
		if err := school.Migrate(ctx); err != nil {
			return err
		}
		go drain(ctx, school, post)
		handler = carefully(school, verify)
	}
	return serve(ctx, *listen, handler)
}

// serve answers until the context ends. The one line that it prints says where.
func serve(ctx context.Context, address string, h http.Handler) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Printf("{\"ready\":true,\"url\":\"http://%s\"}\n", l.Addr())
	server := &http.Server{Handler: h, ReadTimeout: 30 * time.Second}
	go func() {
		<-ctx.Done()
		_ = server.Shutdown(context.WithoutCancel(ctx))
	}()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
