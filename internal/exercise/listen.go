package exercise

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// listener is an HTTP server on an ephemeral port of 127.0.0.1.
type listener struct {
	server *http.Server
	socket net.Listener
	done   chan struct{}
}

func listen(h http.Handler) (*listener, error) {
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen on a free port of 127.0.0.1: %w", err)
	}
	l := &listener{socket: socket, done: make(chan struct{}), server: &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 32 << 10,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}}
	go func() {
		defer close(l.done)
		_ = l.server.Serve(socket) // ends with ErrServerClosed
	}()
	return l, nil
}

func (l *listener) address() string { return l.socket.Addr().String() }

// close frees the port, lets what is under way be answered for a moment and
// cuts the rest. It may be called more than once.
func (l *listener) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	err := l.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = l.server.Close()
	}
	<-l.done
	return err
}
