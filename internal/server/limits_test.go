package server

import (
	"bufio"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
)

// A request's line and headers may have 32 KiB together, and not one byte more
// (2-contracts §1).
func TestHeaderLimit(t *testing.T) {
	t.Parallel()
	n := &Node{log: slog.New(slog.DiscardHandler)}
	server := n.httpServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	for size, status := range map[int]int{32 << 10: http.StatusOK, 32<<10 + 1: http.StatusRequestHeaderFieldsTooLarge} {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		const around = "GET / HTTP/1.1\r\nHost: pawl\r\nPad: \r\n\r\n"
		head := strings.Replace(around, "Pad: ", "Pad: "+strings.Repeat("x", size-len(around)), 1)
		if _, err := fmt.Fprint(conn, head); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != status {
			t.Errorf("%d bytes: %d, want %d", size, answer.StatusCode, status)
		}
	}
}
