package sim

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"time"
)

// loopback is a listener on a free port of 127.0.0.1 with its HTTP server.
type loopback struct {
	server *http.Server
	done   chan struct{}
}

func (l *loopback) start(h http.Handler) (string, error) {
	if l.server != nil {
		return "", errors.New("sim: start: already started")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	l.server = &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	l.done = make(chan struct{})
	go func() {
		defer close(l.done)
		_ = l.server.Serve(listener) // ends with ErrServerClosed
	}()
	return "http://" + listener.Addr().String(), nil
}

// close closes the listener, waits a moment for running requests, whose
// handlers must have been told to end, and closes all connections.
func (l *loopback) close() error {
	if l.server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	err := l.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = l.server.Close()
	}
	<-l.done
	return err
}
