package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxFile bounds a configuration file and what ${file:PATH} reads.
const maxFile = 256 << 10

var (
	variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// errReference says nothing of what was written, which may be half a secret.
	errReference = errors.New("a ${ is not followed by a name and a }; write ${NAME}, ${file:PATH}, or $${ for the two characters themselves")
)

// expander replaces ${NAME} and ${file:PATH} inside one scalar, after the YAML
// was parsed: whatever a value holds, it stays one value.
type expander struct {
	env func(string) (string, bool)
	// dir is what relative paths of ${file:PATH} start from.
	dir string
}

func (x expander) expand(text string) (string, error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		if !found {
			out.WriteString(text)
			break
		}
		if escaped, ok := strings.CutSuffix(before, "$"); ok {
			out.WriteString(escaped + "${")
			text = rest
			continue
		}
		out.WriteString(before)
		reference, after, closed := strings.Cut(rest, "}")
		if !closed {
			return "", errReference
		}
		value, err := x.lookup(reference)
		if err != nil {
			return "", err
		}
		out.WriteString(value)
		text = after
	}
	if !utf8.ValidString(out.String()) || strings.ContainsRune(out.String(), 0) {
		return "", errors.New("the value is not UTF-8 text; check the variable or file it comes from")
	}
	return out.String(), nil
}

func (x expander) lookup(reference string) (string, error) {
	if path, ok := strings.CutPrefix(reference, "file:"); ok {
		return x.file(path)
	}
	if !variable.MatchString(reference) {
		return "", errReference
	}
	value, ok := x.env(reference)
	if !ok {
		return "", fmt.Errorf("the environment variable %s is not set; set it before the start", reference)
	}
	return value, nil
}

// file reads a file without its final line break, which belongs to the file
// and not to the value.
func (x expander) file(path string) (string, error) {
	if path == "" {
		return "", errors.New("${file:} names no file; write ${file:PATH}")
	}
	full := path
	if !filepath.IsAbs(full) {
		full = filepath.Join(x.dir, full)
	}
	f, err := os.Open(full)
	if err != nil {
		return "", unreadable(path, err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return "", unreadable(path, err)
	}
	if len(data) > maxFile {
		return "", fmt.Errorf("the file %q is larger than %d KiB; name the right one", path, maxFile>>10)
	}
	text := strings.TrimSuffix(string(data), "\n")
	return strings.TrimSuffix(text, "\r"), nil
}

// unreadable names the path as it was written, not as it was resolved.
func unreadable(path string, err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return fmt.Errorf("the file %q cannot be read (%w); check that it exists and that Pawl may read it", path, err)
}
