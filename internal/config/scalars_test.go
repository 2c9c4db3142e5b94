package config

import (
	"fmt"
	"math/big"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"
)

// FuzzScalars: each kind of scalar by its grammar, and read back as written.
func FuzzScalars(f *testing.F) {
	for _, seed := range []string{
		"512MiB", "0B", "9223372036854775807B", "8GiB", "8589934592GiB", "1 MiB", "+1B", "-1B", "01KiB", "2026-01-31T12:00:00Z", "2026-01-31T12:00:00,5Z",
		"2026-01-31T12:00:00+01:00", "0001-01-01T00:00:00Z", "300ms", "1h30m", "-5s", "1e3s", "1.5", "NaN", "+Inf", "0x1p-2", "1_000", "16", "+16", "0x10", "0.15",
		"10.0.0.0/8", "10.0.0.1", "fd00::/8", "10.0.0.0/08", "::ffff:1.2.3.4/96", "fe80::1%eth0/64", "1e400",
	} {
		f.Add(seed)
	}
	size := regexp.MustCompile(`^([0-9]+)(B|KiB|MiB|GiB)$`)
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := readSize(text); err == nil {
			m := size.FindStringSubmatch(text)
			if m == nil {
				t.Fatalf("%q is the size %d", text, got)
			}
			n, _ := new(big.Int).SetString(m[1], 10)
			n.Lsh(n, map[string]uint{"B": 0, "KiB": 10, "MiB": 20, "GiB": 30}[m[2]])
			if !n.IsInt64() || n.Int64() != int64(got) {
				t.Fatalf("%q is the size %d", text, got)
			}
			if back, err := readSize(got.String()); err != nil || back != got {
				t.Fatalf("%q is written %q and read as %d, %v", text, got, back, err)
			}
		}
		if got, err := readMoment(text); err == nil {
			if std, err := time.Parse(time.RFC3339, text); err != nil || !std.Equal(got) || got.IsZero() || got.Location() != time.UTC || strings.Contains(text, ",") || strings.HasSuffix(text, "24:00") {
				t.Fatalf("%q is the moment %v, package time says %v %v", text, got, std, err)
			}
		}
		if got, err := readDuration(text); err == nil {
			if back, err := readDuration(got.String()); err != nil || back != got {
				t.Fatalf("%q is written %q and read as %v, %v", text, got, back, err)
			}
		}
		if got, err := readInt(text); err == nil {
			if n, ok := new(big.Int).SetString(strings.TrimPrefix(text, "+"), 10); !ok || n.Int64() != int64(got) || !n.IsInt64() {
				t.Fatalf("%q is the number %d", text, got)
			}
		}
		if got, err := readAmount(text); err == nil {
			if back, err := readAmount(got.String()); err != nil || back != got {
				t.Fatalf("%q is written %q and read as %v, %v", text, got, back, err)
			}
		}
		if got, err := readPrefix(text); err == nil {
			if back, err := netip.ParsePrefix(text); err != nil || back != got {
				t.Fatalf("%q is the range %v", text, got)
			}
		}
	})
}

// FuzzExpand: what stands for a variable is replaced once, whatever it holds,
// and everything else stays.
func FuzzExpand(f *testing.F) {
	for _, seed := range []string{"a ${NAME} b", "$${NAME}", "${NAME", "${}", "${9}", "$$${NAME}", "${NAME}${NAME}", "${a${NAME}}", "$", "}", "${NAME }"} {
		f.Add(seed, "value")
		f.Add(seed, "${NAME}")
	}
	pieces := regexp.MustCompile(`\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\$\{`)
	f.Fuzz(func(t *testing.T, text, value string) {
		if strings.Contains(text, "${file:") {
			return
		}
		x := expander{env: func(name string) (string, bool) { return value, name != "UNSET" }}
		got, err := x.expand(text)
		broken := false
		want := pieces.ReplaceAllStringFunc(text, func(piece string) string {
			switch piece {
			case "$${":
				return "${"
			case "${", "${UNSET}":
				broken = true
			}
			return value
		})
		broken = broken || strings.ToValidUTF8(want, "?") != want || strings.Contains(want, "\x00")
		if (err != nil) != broken || err == nil && got != want {
			t.Fatalf("%q with %q: %q %v, want %q, refused %v", text, value, got, err, want, broken)
		}
		if err != nil && value != "" && strings.Contains(fmt.Sprint(err), value) && len(value) > 12 {
			t.Fatalf("%q: the error repeats the value: %v", text, err)
		}
	})
}
