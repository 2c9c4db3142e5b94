package cli

import (
	"errors"
	"io"
	"os"
)

// maxFile bounds what is read whole. It is above every limit of the server, so
// that a body that is too large for it can still be verified and signed.
const maxFile = 64 << 20

// file reads the file of that name whole, or standard input for "-".
func (s *session) file(name string) ([]byte, error) {
	if name == "-" {
		return readAll(s.Stdin)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f)
}

func readAll(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = errors.New("it is larger than 64 MiB")
	}
	return text, err
}
