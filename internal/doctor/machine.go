package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/pawlhq/pawl/internal/config"
	"github.com/pawlhq/pawl/internal/server"
)

func asProblems(err error, into *config.Problems) bool { return errors.As(err, into) }

// disk looks at the data folder and its space.
func (e *exam) disk() {
	dir := e.cfg.Data
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.say("disk", Warning, "the data folder "+dir+" does not exist", "the first start makes it; if there was one, name it with --data or data:")
		return
	case err != nil:
		e.say("disk", Fault, "the data folder cannot be looked at: "+err.Error(), "let the user that Pawl runs as read and write it")
		return
	case !info.IsDir():
		e.say("disk", Fault, dir+" is no folder", "name the data folder with --data or data:")
		return
	}
	if unix.Access(dir, unix.W_OK|unix.X_OK) != nil {
		e.say("disk", Fault, "the data folder "+dir+" cannot be written by this user", "run as the user that owns it, or chown it")
	} else if mode := info.Mode().Perm(); mode&0o077 != 0 {
		e.say("disk", Warning, fmt.Sprintf("others may look into the data folder %s (mode %04o)", dir, mode), "chmod 700 "+dir)
	}
	free, err := server.FreeSpace(dir)
	least := uint64(e.cfg.Disk.MinFree)
	seen := fmt.Sprintf("%d MiB are free in %s; below %d MiB nothing new is taken in", free>>20, dir, least>>20)
	switch {
	case err != nil:
		e.say("disk", Warning, "the free space is not known: "+err.Error(), "look at it by hand: intake is not guarded")
	case free < least:
		e.say("disk", Fault, seen, "make room, or give the ledger a larger disk; disk.min_free is the bound")
	case free < 4*least:
		e.say("disk", Warning, seen, "make room soon")
	default:
		e.say("disk", OK, seen, "")
	}
}

// secrets looks at the files that hold keys.
func (e *exam) secrets() {
	open := 0
	for _, name := range []string{"secret.key", "admin.key", "pawl.db"} {
		path := filepath.Join(e.cfg.Data, name)
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		if mode := info.Mode().Perm(); mode&0o077 != 0 {
			open++
			e.say("secrets", Fault, fmt.Sprintf("others may read %s (mode %04o)", path, mode), "chmod 600 "+path+"; if others use this machine, change what was in it")
		}
	}
	key, ledger := filepath.Join(e.cfg.Data, "secret.key"), filepath.Join(e.cfg.Data, "pawl.db")
	_, noKey := os.Stat(key)
	_, noLedger := os.Stat(ledger)
	switch {
	case !e.cfg.Secrets.IsZero():
		e.say("secrets", OK, "the configuration gives the wrapping key", "")
	case e.cfg.Shared():
		// The configuration's own check refuses it.
	case noKey != nil && noLedger == nil:
		e.say("secrets", Fault, "there is a ledger, and "+key+" is missing", "bring it back from where it is kept apart from the backups: without it no secret of the ledger can be opened")
	case noKey != nil:
		e.say("secrets", OK, "there is no wrapping key yet; the first start draws one", "")
	case open == 0:
		e.say("secrets", OK, key+" is there, for its owner alone", "")
	}
}

// ports looks who listens where the node is to listen.
func (e *exam) ports(ctx context.Context) {
	for _, l := range []struct{ key, address string }{{"listen", e.cfg.Listen}, {"admin_listen", e.cfg.AdminListen}} {
		host, port, _ := net.SplitHostPort(l.address)
		if port == "0" {
			e.say("ports", OK, l.key+" takes any free port", "")
			continue
		}
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			host = "127.0.0.1"
		}
		at := "http://" + net.JoinHostPort(host, port)
		status, body, err := get(ctx, e.near, at+"/livez", "")
		if err == nil && status == http.StatusOK && body == "alive\n" {
			e.say("ports", OK, "a running Pawl answers at "+l.key+" "+l.address, "")
			if l.key == "listen" {
				e.api = at
			}
			continue
		}
		free, err := net.Listen("tcp", l.address)
		if err != nil {
			e.say("ports", Fault, l.key+" "+l.address+" cannot be taken, and no Pawl answers there: "+last(err), "stop what holds it (ss -ltnp shows it), or choose another address")
			continue
		}
		_ = free.Close()
		e.say("ports", OK, l.key+" "+l.address+" is free", "")
	}
}

// get asks something on the way of a node; the body is its beginning.
func get(ctx context.Context, by *http.Client, address, key string) (status int, body string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, "", err
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := by.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 16<<10))
	return res.StatusCode, string(text), err
}

// key tries the admin key at the running node.
func (e *exam) key(ctx context.Context) {
	secret, where := e.AdminKey, "PAWL_ADMIN_KEY or PAWL_KEY"
	if secret == "" {
		where = filepath.Join(e.cfg.Data, "admin.key")
		text, err := os.ReadFile(where)
		if err != nil {
			e.say("key", Warning, "no admin key is given, and none is in "+where, "set PAWL_KEY to one, so that it can be tried; the first start of a node writes one")
			return
		}
		secret = strings.TrimSpace(string(text))
	}
	if e.api == "" {
		e.say("key", OK, "the key of "+where+" was not tried, since no node of this configuration answers on this machine", "")
		return
	}
	status, body, err := get(ctx, e.near, e.api+"/v1/whoami", secret)
	switch {
	case err != nil:
		e.say("key", Fault, "the node did not answer: "+last(err), "look at its log")
	case status == http.StatusUnauthorized:
		e.say("key", Fault, "the node does not know the key of "+where, "use one that is in force; starting the node with PAWL_ADMIN_KEY puts a new admin key in force")
	case status != http.StatusOK:
		e.say("key", Fault, fmt.Sprintf("the node answered %d", status), "look at its log")
	case !strings.Contains(body, `"admin"`):
		e.say("key", Warning, "the key of "+where+" works and has no scope admin", "use the admin key for what is of all tenants")
	default:
		e.say("key", OK, "the admin key of "+where+" works", "")
	}
}

// last is the innermost cause: those around it repeat addresses.
func last(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}
