package sim

import (
	"fmt"
	"testing"

	"github.com/pawlhq/pawl"
)

// The list has every task of the dialect once, in the order they were made.
func TestList(t *testing.T) {
	p := planOf(
		Script{Dialect: Native, Start: hour, End: 2 * hour, Settle: 2 * hour},
		Script{Dialect: Native, Final: pawl.Failed, ErrorCode: "gpu_on_fire"},
		Script{Dialect: Native, Start: hour, End: 2 * hour, Settle: 2 * hour},
	)
	s := newTestServer(t, p, Config{})
	var tasks []string
	for n := range 3 {
		_, made := call(t, s, "POST", "/generate", s.Key(), fmt.Sprintf(`{"model":"m","input":{"n":%d}}`, n))
		tasks = append(tasks, made["task"].(string))
	}
	var got []string
	after, pages := "", 0
	for ; pages == 0 || after != ""; pages++ {
		status, list := call(t, s, "GET", "/list?limit=2&after="+after, s.Key(), "")
		want(t, "list", status, 200)
		for _, item := range list["items"].([]any) {
			got = append(got, fmt.Sprint(item.(map[string]any)["task"], " ", item.(map[string]any)["state"]))
		}
		after, _ = list["next"].(string)
	}
	want(t, "tasks", got, []string{tasks[0] + " queued", tasks[1] + " failed", tasks[2] + " queued"})
	want(t, "pages", pages, 2)
	for path, status := range map[string]int{"/list?after=none": 400, "/list?limit=0": 400, "/list?limit=x": 400} {
		got, _ := call(t, s, "GET", path, s.Key(), "")
		want(t, path, got, status)
	}
	status, _ := call(t, s, "GET", "/list", "wrong", "")
	want(t, "wrong key", status, 401)
}
