package cli

import (
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A disk that is really full is answered 503 by a real process, which goes on
// reading, remembers nothing of what it refused, and works again when there is
// room. Here no file may grow beyond a size, which the kernel answers like a
// full disk.
func TestFullDiskOfARealProcess(t *testing.T) {
	p := &process{T: t, dir: t.TempDir()}
	provider := newTaskService(t)
	p.write("pawl.yaml", fmt.Sprintf("data: data\negress: {allow: [127.0.0.0/8]}\nupstreams:\n  tasks: {preset: body-timestamp, base_url: %q, read: {first: 1h, max: 1h}}\n", provider.url))
	p = serveIn(t, p.dir)
	body := `{"upstream":"tasks","model":"m","input":{"prompt":"` + strings.Repeat("x", 200<<10) + `"}}`
	submit := func(key string) (int, map[string]any) {
		return p.call(http.MethodPost, "/v1/operations", body, "Idempotency-Key", key)
	}
	if status, answer := submit("first"); status != http.StatusAccepted {
		t.Fatal(status, answer)
	}
	var was unix.Rlimit
	if err := unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_FSIZE, nil, &was); err != nil {
		t.Fatal(err)
	}
	limit := func(size uint64) {
		t.Helper()
		if err := unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: was.Max}, nil); err != nil {
			t.Fatal(err)
		}
	}
	limit(1 << 20)
	taken, refused := 1, ""
	for i := range 60 {
		key := fmt.Sprint("job-", i)
		status, answer := submit(key)
		if status == http.StatusAccepted {
			taken++
			continue
		}
		if status != http.StatusServiceUnavailable || answer["retry_after"] == nil || answer["reason"] != "unavailable" {
			t.Fatal(status, answer)
		}
		refused = key
		break
	}
	if refused == "" {
		t.Fatal("nothing was refused")
	}
	count := func() int {
		_, answer := p.call(http.MethodGet, "/v1/operations?page_size=200", "")
		items, _ := answer["items"].([]any)
		return len(items)
	}
	if n := count(); n != taken {
		t.Errorf("%d operations, %d were answered 202", n, taken)
	}
	limit(was.Cur)
	p.until("the key that was refused does not work", func() bool { status, _ := submit(refused); return status == http.StatusAccepted })
	if n := count(); n != taken+1 {
		t.Errorf("%d operations, want %d", n, taken+1)
	}
	program, err := exec.LookPath("pawl")
	if err != nil {
		t.Fatal(err)
	}
	check := exec.Command(program, "ledger", "check", "--data", "data")
	check.Dir = p.dir
	if out, err := check.CombinedOutput(); err != nil || !strings.Contains(string(out), "0 violations") {
		t.Errorf("%v: %s", err, out)
	}
	t.Logf("%d taken before the disk was full", taken)
}
