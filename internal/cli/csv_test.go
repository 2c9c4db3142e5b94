package cli

import (
	"encoding/csv"
	"net/http"
	"strings"
	"testing"
)

// What a spreadsheet would take for a formula begins with an apostrophe (O-135;
// OWASP, CSV injection); what a terminal would act on is escaped; plain numbers
// stay numbers.
func TestCSVCells(t *testing.T) {
	for value, want := range map[string]string{
		`"=1+1"`: "'=1+1", `"+1+1"`: "'+1+1", `"-1+1"`: "'-1+1", `"@SUM(Z1)"`: "'@SUM(Z1)", `"\t=1"`: `'\t=1`, `"\r=1"`: `'\r=1`, `"\n=1"`: `'\n=1`,
		`"＝1"`: "'＝1", `"＋1"`: "'＋1", `"－1"`: "'－1", `"＠x"`: "'＠x", `"=cmd|'/C calc'!Z0"`: "'=cmd|'/C calc'!Z0",
		`"-"`: "'-", `"-5e3"`: "'-5e3", `"-1,5"`: "'-1,5", `"--5"`: "'--5",
		`"-5.000000000"`: "-5.000000000", `-7`: "-7", `12.5`: "12.5", `"a=1"`: "a=1", `""`: "", `null`: "", `true`: "true",
		`"\u001b[2Jx"`: `\x1b[2Jx`, `"a\u202eb"`: `a\u202eb`, `"two\nlines"`: `two\nlines`,
		`["=a","b"]`: "'=a,b", `["a","=b"]`: "a,=b", `{"a":1}`: `{"a":1}`, `[{"a":1}]`: `[{"a":1}]`,
		`" =1+1"`: "' =1+1", `"a;=1+1"`: "a;'=1+1", `"a; @x;b"`: "a;' @x;b", `"a;\"=1+1"`: `a;'"=1+1`, `"a;b-1"`: "a;b-1", `{"k":"x;-1"}`: `{"k":"x;'-1"}`,
		`"2026-01-02T03:04:05.123456Z"`: "2026-01-02T03:04:05.123456Z",
	} {
		var row map[string]any
		if err := decode([]byte(`{"v":`+value+`}`), &row); err != nil {
			t.Fatal(err)
		}
		if got := csvCell(row["v"]); got != want {
			t.Errorf("%s is written as %q, want %q", value, got, want)
		}
	}
}

// An export has every page, a heading, RFC 4180's line ends and quotes, and
// money in columns of its own.
func TestCSVExport(t *testing.T) {
	pages := []string{
		`{"items":[{"id":"op_1","state":"succeeded","upstream":"up","model":"a,\"b\"","cost":{"amount":"0.120000000","currency":"USD","settled":true}}],"next_page_token":"two"}`,
		`{"items":[{"id":"op_2","state":"failed","upstream":"=1+1","model":"m","task_id":"t","cost":null}]}`,
	}
	asked := 0
	url := fake(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if want := []string{"", "two"}[min(asked/2, 1)]; q.Get("page_token") != want || q.Get("page_size") != "200" || q.Get("state") != "failed" {
			t.Errorf("query %s, want page token %q", r.URL.RawQuery, want)
		}
		asked++
		if asked%2 == 1 { // Each page is had at the second try.
			w.Header().Set("Retry-After", "0")
			reply(w, http.StatusServiceUnavailable, `{"title":"busy"}`)
			return
		}
		reply(w, http.StatusOK, pages[asked/2-1])
	})
	r := newWorld(t, url).run("op", "list", "--csv", "--state", "failed")
	r.want(t, ExitDone, "", "")
	want := "id,state,upstream,model,task_id,cost.amount,cost.currency,cost.settled,updated_at\r\n" +
		"op_1,succeeded,up,\"a,\"\"b\"\"\",,0.120000000,USD,true,\r\n" +
		"op_2,failed,'=1+1,m,t,,,,\r\n"
	if r.stdout != want {
		t.Errorf("%q, want %q", r.stdout, want)
	}
	if records, err := csv.NewReader(strings.NewReader(r.stdout)).ReadAll(); err != nil || len(records) != 3 {
		t.Errorf("%d records, %v", len(records), err)
	}
}

func TestCSVRefusals(t *testing.T) {
	w := newWorld(t, "http://127.0.0.1:1")
	w.run("op", "list", "--csv", "--json").want(t, ExitUsage, "", "exclude each other")
	w.run("event", "list", "--csv", "--follow").want(t, ExitUsage, "", "--follow")
	w.run("op", "submit", "--csv").want(t, ExitUsage, "", "unknown flag --csv")
	w.run("op", "list", "--csv").want(t, ExitUnreachable, "", "did not answer")
	// A refusal in the middle ends it, and the exit status tells.
	n := 0
	url := fake(t, func(w http.ResponseWriter, _ *http.Request) {
		if n++; n == 1 {
			reply(w, http.StatusOK, `{"items":[{"id":"op_1"}],"next_page_token":"x"}`)
			return
		}
		reply(w, http.StatusBadRequest, `{"title":"no","reason":"invalid_page_token"}`)
	})
	newWorld(t, url).run("op", "list", "--csv").want(t, ExitFailed, "op_1", "invalid_page_token")
}

// Every list of the command line can be exported.
func TestEveryListHasCSV(t *testing.T) {
	for _, leaf := range leaves(t) {
		lists := leaf.node.Name == "list" || leaf.node.Name == "entries" || leaf.node.Name == "attempts" || leaf.node.Name == "timeline"
		if lists && flagNamed(leaf.node, "--csv") == nil {
			t.Errorf("%s has no --csv", leaf.path)
		}
	}
}
