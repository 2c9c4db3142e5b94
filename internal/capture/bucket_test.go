package capture

import (
	"strings"
	"testing"
)

// Stores are opened by their URL without a word to anybody, and one that is not
// known is refused with those that are.
func TestOpenBucket(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1") // whoever asks the network fails
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_CONFIG_FILE", "/dev/null")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
	for _, address := range append([]string{
		"mem://", "s3://films?region=eu-west-1", "s3://films?region=auto&endpoint=https://objects.example.com&use_path_style=true",
		"azblob://films?storage_account=studio",
	}, google...) {
		files, err := OpenBucket(t.Context(), address)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		if err := files.Close(); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{"ftp://films", "s4://films"} {
		_, err := OpenBucket(t.Context(), address)
		scheme, _, _ := strings.Cut(address, "films")
		if err == nil || !strings.Contains(err.Error(), scheme+" is not compiled into this program, which knows azblob, file, ") || !strings.Contains(err.Error(), "mem, s3;") {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := OpenBucket(t.Context(), "s3://films?regio=eu"); err == nil || !strings.Contains(err.Error(), "regio") {
		t.Errorf("a misspelt parameter: %v", err)
	}
}

// A part is never smaller than vendors take, nor so small that a file has more
// than 10,000 of them.
func TestParts(t *testing.T) {
	bucket := new(Files)
	for _, tt := range []struct {
		size, limit int64
		encoding    string
		want        int
	}{
		{1, 5 << 30, "", 8 << 20},
		{80_000 << 20, 1 << 40, "", 8 << 20},
		{1 << 40, 1 << 40, "", 109951163}, // 2^40 / 10,000, rounded up
		{1 << 20, 1 << 40, "gzip", 109951163},
	} {
		file := &spoolFile{size: tt.size, about: about{Encoding: tt.encoding}}
		if got := bucket.part(file, tt.limit); got != tt.want {
			t.Errorf("%d bytes %s: %d, want %d", tt.size, tt.encoding, got, tt.want)
		}
		if got := (&Files{dir: "/"}).part(file, tt.limit); got != 256<<10 {
			t.Errorf("a folder: %d", got)
		}
	}
}
