package sqlite

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// sector is what a disk writes whole or not at all.
const sector = 512

// edit is what a program did to a file and has not synced: bytes written at
// a place, or, where there are none, a new size.
type edit struct {
	seq  int
	at   int64
	data []byte
}

// inode is a file's content apart from its name: as it was synced last, and
// what was done to it since.
type inode struct {
	synced  []byte
	pending []edit
}

// disk is the files of one folder as a power cut leaves them. What programs
// see lies in the folder itself; the disk keeps count of what of it was synced.
// The power goes off in the midst of a change, and every later access fails.
//
// A change that was not synced is lost, kept, or kept in part, sector by
// sector; a sector in flight may also end as anything. Changes may be kept
// though earlier ones are lost. A file that was made or removed is there or
// not until its folder is synced.
type disk struct {
	folder string
	mu     sync.Mutex
	rng    *rand.Rand
	// names is the folder as programs see it, kept as it was synced last.
	names, kept map[string]*inode
	seq         int
	open        int
	// The power goes off at the left-th change that aim takes.
	aim  func(what string) bool
	left int
	// power ends with the cut; during says with which change.
	power  context.Context
	turn   context.CancelFunc
	during string
	images map[string][]byte
	// deaf makes the disk forget what it is told to sync, as a broken one does.
	deaf bool
}

func newDisk(folder string, rng *rand.Rand) *disk {
	d := &disk{folder: folder, rng: rng, names: map[string]*inode{}, kept: map[string]*inode{}}
	d.power, d.turn = context.WithCancel(context.Background())
	return d
}

// arm sets when the power goes off.
func (d *disk) arm(n int, aim func(what string) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left, d.aim = n, aim
}

func (d *disk) dead() bool { return d.power.Err() != nil }

// step makes a change, unless the power is off or goes off with it: begin
// notes what is under way by then, and do completes it.
func (d *disk) step(what string, begin func(), do func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead() {
		return errPowerOff
	}
	begin()
	if d.left > 0 && d.aim(what) {
		if d.left--; d.left == 0 {
			d.cut(what)
			return errPowerOff
		}
	}
	return do()
}

// inodeOf is the file of a name, which is new where there is none.
func (d *disk) inodeOf(name string) *inode {
	if d.names[name] == nil {
		d.names[name] = &inode{}
	}
	return d.names[name]
}

// note remembers a change until it is synced.
func (d *disk) note(n *inode, at int64, data []byte) {
	d.seq++
	n.pending = append(n.pending, edit{d.seq, at, bytes.Clone(data)})
}

func (d *disk) sync(n *inode) {
	if d.deaf {
		return
	}
	n.synced = n.after(func(edit) func() fate { return always(kept) }, nil)
	n.pending = nil
}

func (d *disk) syncFolder() {
	d.kept = make(map[string]*inode)
	for name, n := range d.names {
		d.kept[name] = n
	}
}

// fate is what became of a sector that was not synced.
type fate int

const (
	lost fate = iota
	kept
	garbled
)

func always(f fate) func() fate { return func() fate { return f } }

// after is the content that is left of a file, by the fates of the sectors of
// each change.
func (n *inode) after(fates func(edit) func() fate, rng *rand.Rand) []byte {
	image := bytes.Clone(n.synced)
	for _, c := range n.pending {
		of := fates(c)
		if c.data == nil {
			if of() != lost {
				image = resized(image, c.at)
			}
			continue
		}
		for from := int64(0); from < int64(len(c.data)); {
			to := min(int64(len(c.data)), (c.at+from)/sector*sector+sector-c.at)
			piece := c.data[from:to]
			switch of() {
			case garbled:
				piece = noise(rng, len(piece))
				fallthrough
			case kept:
				if end := c.at + to; end > int64(len(image)) {
					image = resized(image, end)
				}
				copy(image[c.at+from:], piece)
			}
			from = to
		}
	}
	return image
}

func resized(image []byte, size int64) []byte {
	if size <= int64(len(image)) {
		return image[:size]
	}
	return append(image, make([]byte, size-int64(len(image)))...)
}

func noise(rng *rand.Rand, n int) []byte {
	p := make([]byte, 0, n+8)
	for len(p) < n {
		p = binary.LittleEndian.AppendUint64(p, rng.Uint64())
	}
	return p[:n]
}

// manners are the ways in which a disk loses what it was not told to sync.
// Each gives the fates of the changes of one cut, the latest of which is seq.
var manners = []func(rng *rand.Rand, oldest, seq int) func(edit) func() fate{
	// Nothing was written.
	func(*rand.Rand, int, int) func(edit) func() fate {
		return func(edit) func() fate { return always(lost) }
	},
	// All of it was, as when a process dies and its machine does not.
	func(*rand.Rand, int, int) func(edit) func() fate {
		return func(edit) func() fate { return always(kept) }
	},
	// Everything up to a moment, and a part of what was under way.
	func(rng *rand.Rand, oldest, seq int) func(edit) func() fate {
		last := oldest + rng.IntN(seq-oldest+2)
		return func(c edit) func() fate {
			switch {
			case c.seq < last:
				return always(kept)
			case c.seq > last:
				return always(lost)
			}
			return oneOf(rng, lost, kept)
		}
	},
	// Some changes, later ones without earlier ones too.
	func(rng *rand.Rand, _, _ int) func(edit) func() fate {
		return func(edit) func() fate { return always(oneOf(rng, lost, kept)()) }
	},
	// Some sectors.
	func(rng *rand.Rand, _, _ int) func(edit) func() fate {
		return func(edit) func() fate { return oneOf(rng, lost, kept) }
	},
	// Some sectors, others as anything.
	func(rng *rand.Rand, _, _ int) func(edit) func() fate {
		return func(edit) func() fate { return oneOf(rng, lost, kept, kept, garbled) }
	},
}

func oneOf(rng *rand.Rand, fates ...fate) func() fate {
	return func() fate { return fates[rng.IntN(len(fates))] }
}

// cut turns the power off.
func (d *disk) cut(during string) {
	oldest := d.seq
	for _, n := range d.files() {
		for _, c := range n.pending {
			oldest = min(oldest, c.seq)
		}
	}
	fates := manners[d.rng.IntN(len(manners))](d.rng, oldest, d.seq)
	d.images = make(map[string][]byte)
	for _, name := range d.allNames() {
		// A name that changed since the folder was synced stands for the file
		// it stood for then, for the new one, or between the two for none.
		n := d.names[name]
		if was := d.kept[name]; n != was {
			left := []*inode{n, was}
			if n != nil && was != nil {
				left = append(left, nil)
			}
			n = left[d.rng.IntN(len(left))]
		}
		if n != nil {
			d.images[name] = n.after(fates, d.rng)
		}
	}
	d.during = during
	d.turn()
}

// files are all files that have or had a name, in a fixed order.
func (d *disk) files() (all []*inode) {
	for _, name := range d.allNames() {
		for _, n := range []*inode{d.names[name], d.kept[name]} {
			if n != nil && !slices.Contains(all, n) {
				all = append(all, n)
			}
		}
	}
	return all
}

func (d *disk) allNames() (all []string) {
	for name := range d.names {
		all = append(all, name)
	}
	for name := range d.kept {
		if d.names[name] == nil {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// restart puts what is left into the folder, turns the power on and says during
// which change it went off. Programs must have closed all files; a disk that
// nobody cut is cut now.
func (d *disk) restart(t *testing.T) (during string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open != 0 {
		t.Fatalf("%d files are still open", d.open)
	}
	if !d.dead() {
		d.cut("rest")
	}
	for _, name := range d.allNames() {
		if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	d.names, d.kept = map[string]*inode{}, map[string]*inode{}
	for name, image := range d.images {
		if err := os.WriteFile(name, image, 0o600); err != nil {
			t.Fatal(err)
		}
		d.names[name] = &inode{synced: image}
	}
	d.syncFolder()
	// The index of the log is memory that happens to have a name: whatever is
	// found there must not be believed.
	index := filepath.Join(d.folder, fileName+"-shm")
	_ = os.Remove(index)
	if d.rng.IntN(2) == 0 {
		if err := os.WriteFile(index, noise(d.rng, 32<<10), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d.power, d.turn = context.WithCancel(context.Background())
	d.left = 0
	return d.during
}

// The disk does what it says: what was synced stays, whole; the rest is lost,
// kept or torn at sectors.
func TestDisk(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 1))
		d := newDisk(t.TempDir(), rng)
		name := filepath.Join(d.folder, "file")
		n := d.inodeOf(name)
		d.note(n, 0, bytes.Repeat([]byte{'a'}, 3*sector))
		d.sync(n)
		d.syncFolder()
		d.note(n, sector/2, bytes.Repeat([]byte{'b'}, sector))
		d.note(n, 4*sector, []byte{'c'})
		d.cut("write")
		image := d.images[name]
		if len(image) != 3*sector && len(image) != 4*sector+1 {
			t.Fatalf("seed %d: %d bytes are left", seed, len(image))
		}
		for i, b := range image[:3*sector] {
			if written := i >= sector/2 && i < sector/2+sector; !written && b != 'a' {
				t.Fatalf("seed %d: byte %d was synced as 'a' and is %q", seed, i, b)
			}
		}
		seen[fmt.Sprintf("%q %q %v", image[sector-1], image[sector], len(image) > 3*sector)]++
	}
	// Each of the two sectors of the first write lost or kept, the second write
	// lost or kept.
	for _, first := range "ab" {
		for _, second := range "ab" {
			for _, longer := range []bool{false, true} {
				if key := fmt.Sprintf("%q %q %v", byte(first), byte(second), longer); seen[key] == 0 {
					t.Errorf("never left: %s", key)
				}
			}
		}
	}
}
