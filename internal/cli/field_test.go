package cli

import (
	"encoding/csv"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// Text from providers and receivers reaches the terminal as text and a spreadsheet
// as text, by whatever command it is shown (field case O-135).
func TestO135TerminalAndSpreadsheet(t *testing.T) {
	const hostile = "=1+1\x1b]0;owned\x07\x1b[2J<img src=x onerror=alert(1)></script>\u202egnp.exe\r\n@SUM(Z9)"
	item := map[string]any{}
	for _, name := range []string{
		"task_id", "model", "upstream", "correlation_id", "upstream_state", "owner", "excerpt", "error", "target", "detail", "reason", "note", "meaning", "source", "type",
		"external_id", "word", "last_error", "url", "description", "name", "actor", "action", "subject",
	} {
		item[name] = hostile
	}
	item["id"], item["state"], item["at"] = "op_1", "failed", "2026-01-02T03:04:05Z"
	item["samples"], item["notes"] = []any{}, []any{}
	one, err := json.Marshal(item)
	if err != nil {
		t.Fatal(err)
	}
	url := fake(t, func(w http.ResponseWriter, r *http.Request) {
		last := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
		if strings.HasPrefix(last, "op_") || strings.HasPrefix(last, "rev_") || strings.HasPrefix(last, "evt_") || strings.HasPrefix(last, "dlv_") || strings.HasPrefix(last, "ep_") {
			reply(w, http.StatusOK, string(one))
			return
		}
		reply(w, http.StatusOK, `{"items":[`+string(one)+`]}`)
	})
	for _, args := range [][]string{
		{"op", "list"}, {"op", "get", "op_1"}, {"op", "timeline", "op_1"}, {"event", "list"}, {"event", "show", "evt_1"}, {"delivery", "list"}, {"delivery", "attempts", "dlv_1"},
		{"review", "list"}, {"review", "show", "rev_1"}, {"endpoint", "list"}, {"audit", "list"}, {"source", "list"}, {"upstream", "list"},
	} {
		r := newWorld(t, url).run(args...)
		r.want(t, ExitDone, `=1+1\x1b]0;owned\a`, "")
		if i := strings.IndexFunc(r.stdout, func(c rune) bool { return c != '\n' && unprintable(c) }); i >= 0 {
			t.Errorf("%v prints %q", args, r.stdout[i:min(i+20, len(r.stdout))])
		}
		if args[1] == "show" || args[1] == "get" {
			continue
		}
		r = newWorld(t, url).run(append(args, "--csv")...)
		r.want(t, ExitDone, `'=1+1\x1b]0;owned\a`, "")
		rows, err := csv.NewReader(strings.NewReader(r.stdout)).ReadAll()
		if err != nil || len(rows) != 2 {
			t.Errorf("%v: %d rows, %v", args, len(rows), err)
		}
		for _, cell := range rows[len(rows)-1] {
			if strings.ContainsAny(cell[:min(1, len(cell))], "=+@\t\r") || strings.ContainsAny(cell, "\x1b\r\n") {
				t.Errorf("%v: the cell %q acts", args, cell)
			}
		}
	}
}
