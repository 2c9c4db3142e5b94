package telemetry

import (
	"context"
	"io"
	"log/slog"
	"strings"
)

// LibraryLog is the output of the standard logger (log.SetOutput) of a program
// whose log goes to log: libraries write there what they have no other place
// for, such as net/http the bytes that a server sends unasked. What they quote
// may be anything, so each entry is kept up to its first quote, as a warning.
func LibraryLog(log *slog.Logger) io.Writer { return libraryLog{log} }

type libraryLog struct{ log *slog.Logger }

// Write logs one entry.
func (l libraryLog) Write(entry []byte) (int, error) {
	text := strings.TrimSpace(string(entry))
	if at := strings.IndexAny(text, "\"'`"); at >= 0 {
		text = text[:at] + Redacted
	}
	l.log.Log(context.Background(), slog.LevelWarn, text)
	return len(entry), nil
}
