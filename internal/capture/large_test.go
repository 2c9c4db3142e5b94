package capture

import (
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"io"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/ledger"
)

// largeMiB is the size of the file of TestLargeFileInLittleMemory: run it with
// -large-mib 2048 for a whole film.
var largeMiB = flag.Int64("large-mib", 64, "size of the large file, in MiB")

// generated is a file that is made as it is read.
type generated struct{ size, at int64 }

// Read implements io.Reader.
func (g *generated) Read(b []byte) (int, error) {
	if g.at >= g.size {
		return 0, io.EOF
	}
	b = b[:min(int64(len(b)), g.size-g.at)]
	for i := range b {
		at := g.at + int64(i)
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], uint64(at/8)*0x9e3779b97f4a7c15)
		b[i] = word[at%8]
	}
	g.at += int64(len(b))
	return len(b), nil
}

// Seek implements io.Seeker.
func (g *generated) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += g.at
	case io.SeekEnd:
		offset += g.size
	}
	g.at = offset
	return offset, nil
}

// spare is by how much the heap may grow while a large file is captured, in bytes:
// less than half of the smallest one that is tested.
const spare = 24 << 20

// A large file over a connection that is cut five times is captured whole, and
// the heap grows by no more than 24 MiB, whatever its size: a file that is held
// in memory as a whole, or by half, is noticed.
func TestLargeFileInLittleMemory(t *testing.T) {
	size := *largeMiB << 20
	var calls atomic.Int32
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"film"`)
		w.Header().Set("Content-Type", "video/mp4")
		out := &cutting{ResponseWriter: w, left: int(size)}
		if calls.Add(1) <= 5 {
			out.left = int(size / 7)
		}
		http.ServeContent(out, r, "", time.Time{}, &generated{size: size})
	})
	g := newRig(t, allowed)
	g.options.MaxSize = size
	g.restart()
	op := g.succeed(url)
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	start := m.HeapInuse
	var peak atomic.Uint64
	stop := make(chan struct{})
	go func() {
		for {
			runtime.ReadMemStats(&m)
			peak.Store(max(peak.Load(), m.HeapInuse))
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	begun := time.Now()
	var a ledger.Artifact
	for range 6 {
		g.turn()
		if a = g.artifacts(op.ID)[0]; a.State != pawl.ArtifactPending {
			break
		}
		time.Sleep(time.Until(a.DueAt.Std()))
	}
	close(stop)
	sum := sha256.New()
	if _, err := io.Copy(sum, &generated{size: size}); err != nil {
		t.Fatal(err)
	}
	if a.State != pawl.ArtifactCaptured || a.Size != size || string(sum.Sum(nil)) != string(a.SHA256[:]) {
		t.Fatalf("%s, %d bytes: %s", a.State, a.Size, a.LastError)
	}
	if n := calls.Load(); n != 6 {
		t.Errorf("%d requests, want the first and one after each of five cuts", n)
	}
	if heap := peak.Load(); heap > start+spare {
		t.Errorf("the heap grew from %d to %d MiB", start>>20, heap>>20)
	}
	t.Logf("%d MiB in %s, heap at most %d MiB, resident at most %d MiB", size>>20, time.Since(begun).Round(time.Millisecond), peak.Load()>>20, resident(t)>>10)
}

// resident is the most memory that the process ever had, in KiB; 0 where the
// system does not tell.
func resident(t *testing.T) int64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return n
		}
	}
	return 0
}
