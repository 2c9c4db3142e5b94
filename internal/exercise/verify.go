package exercise

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// ErrDiffers means that a folder of receipts is not what its exercise wrote, or
// tells of an exercise that failed.
var ErrDiffers = errors.New("exercise: verify: the folder does not verify")

// Verify checks a folder of receipts: every checksum, checksums.json and the
// archive rebuilt and compared byte for byte, ledger.json judged again, and the
// rules replayed over wire/, on a ledger in memory and two ports of 127.0.0.1. It writes what it did to out; nil drops that.
// It returns an error that wraps [ErrDiffers] at the first part that does not
// hold, and another one if the folder cannot be read. It changes nothing.
func Verify(ctx context.Context, dir string, out io.Writer) error {
	if out == nil {
		out = io.Discard
	}
	f, err := readFolder(dir)
	if err != nil {
		return fmt.Errorf("exercise: verify: %w", err)
	}
	parts := []struct {
		what string
		do   func(context.Context) error
	}{
		{"every file has the checksum that checksums.json lists, and no file is beside them", f.verifyChecksums},
		{"checksums.json and exercise.zip, built again, are the same bytes", f.verifySeal},
		{"the receipts agree with each other, and every check in them holds", f.verifyReceipts},
		{"ledger.json agrees with the fixture, the wire and its own rules", f.verifyLedger},
		{"the rules, replayed over wire/ on a ledger in memory, give the same answers and states", f.verifyReplay},
	}
	for _, part := range parts {
		if err := part.do(ctx); err != nil {
			fmt.Fprintf(out, "FAILS  %s\n", part.what)
			return fmt.Errorf("%w: %w", ErrDiffers, err)
		}
		fmt.Fprintf(out, "holds  %s\n", part.what)
	}
	_, err = fmt.Fprintf(out, "\n%d files. SHA-256 of checksums.json: %s\n%s\n", len(f), sha256Hex(f[fileChecksums]), trust)
	return err
}

const trust = "This proves integrity only against a list that one trusts: whoever can replace the whole folder can replace\n" +
	"checksums.json with it. Compare the SHA-256 above with one that came to you by another way."

func (f folder) verifyChecksums(context.Context) error {
	var sums checksums
	if err := f.decode(fileChecksums, &sums); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(sums.Files)) {
		body, ok := f[name]
		switch {
		case !ok:
			return fmt.Errorf("%s: is missing", name)
		case sha256Hex(body) != sums.Files[name]:
			return fmt.Errorf("%s: its SHA-256 is not the one in checksums.json", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if _, listed := sums.Files[name]; !listed && name != fileChecksums && name != fileArchive {
			return fmt.Errorf("%s: is not in checksums.json", name)
		}
	}
	return nil
}

func (f folder) verifySeal(context.Context) error {
	again := maps.Clone(f)
	if err := again.seal(); err != nil {
		return err
	}
	for _, name := range [...]string{fileChecksums, fileArchive} {
		if !bytes.Equal(again[name], f[name]) {
			return fmt.Errorf("%s: built again, it has other bytes", name)
		}
	}
	return nil
}

func (f folder) verifyReceipts(context.Context) error {
	var r receipt
	if err := f.decode(fileReceipt, &r); err != nil {
		return err
	}
	failures, err := encode(r.failures())
	if err != nil {
		return err
	}
	if !bytes.Equal(failures, f[fileFailure]) {
		return fmt.Errorf("%s: does not hold the refusals of %s", fileFailure, fileReceipt)
	}
	if h := r.SHA256; !h.Binary.same() || !h.Fixture.same() || h.Fixture.Before != sha256Hex(f[fileFixture]) {
		return fmt.Errorf("%s: the SHA-256 of program or fixture changed, or is not that of %s", fileReceipt, fileFixture)
	}
	fix, err := ParseFixture(f[fileFixture])
	if err != nil {
		return err
	}
	if err := complete(fix, r.Checks); err != nil {
		return fmt.Errorf("%s: %w", fileReceipt, err)
	}
	if failed := failedOf(r.Checks); len(failed) > 0 {
		return fmt.Errorf("%s: the exercise itself found that %s does not hold: %s", fileReceipt, failed[0].Name, failed[0].Evidence)
	}
	return nil
}

// complete reports which check of a run is missing, there twice, or unknown.
func complete(fix Fixture, checks []Check) error {
	want := slices.Collect(maps.Keys(reserved))
	for _, s := range fix.Steps {
		want = append(want, s.Check)
	}
	got := make([]string, 0, len(checks))
	for _, c := range checks {
		got = append(got, c.Name)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		return errors.New("its checks are not those of this fixture")
	}
	return nil
}

func (f folder) verifyReplay(ctx context.Context) error {
	fix, b, wire, err := f.evidence()
	if err != nil {
		return err
	}
	return replay(ctx, &dialer{}, fix, b, wire)
}

func (f folder) verifyLedger(context.Context) error {
	fix, b, wire, err := f.evidence()
	if err != nil {
		return err
	}
	return b.judge(fix, wire)
}

// evidence reads fixture, ledger and wire.
func (f folder) evidence() (fix Fixture, b book, wire []exchange, err error) {
	if fix, err = ParseFixture(f[fileFixture]); err != nil {
		return fix, b, nil, err
	}
	if err := f.decode(fileLedger, &b); err != nil {
		return fix, b, nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if !strings.HasPrefix(name, folderWire+"/") {
			continue
		}
		var x exchange
		if err := f.decode(name, &x); err != nil {
			return fix, b, nil, err
		}
		if wireName(x) != name {
			return fix, b, nil, fmt.Errorf("%s: holds exchange %d", name, x.Number)
		}
		wire = append(wire, x)
	}
	slices.SortFunc(wire, func(x, y exchange) int { return x.Number - y.Number })
	for i, x := range wire {
		if x.Number != i+1 {
			return fix, b, nil, fmt.Errorf("wire/: exchange %d is missing", i+1)
		}
		if !slices.Contains(phases, x.Phase) {
			return fix, b, nil, fmt.Errorf("%s: belongs to no phase of a run", wireName(x))
		}
	}
	return fix, b, wire, nil
}

// decode reads one file strictly.
func (f folder) decode(name string, v any) error {
	body, ok := f[name]
	if !ok {
		return fmt.Errorf("%s: is missing", name)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("%s: holds more than one JSON text", name)
	}
	return nil
}
