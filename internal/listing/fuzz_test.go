package listing

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl"
	"github.com/pawlhq/pawl/internal/config"
)

func FuzzPage(f *testing.F) {
	f.Add(`{"items":[{"task":"a","event":"e","state":"done","at":1790000000}],"next":"x","more":true}`, uint8(0))
	f.Add(`{"items":[{"task":"a","at":"2026-03-01T12:00:00Z"},{"task":"a"}],"next":"https://x/?p=2"}`, uint8(1))
	f.Add(`{"items":[],"more":false}`, uint8(2))
	f.Add(`{"items":[{"task":"a","at":"2026-03-01T12:00:00Z"}]}`, uint8(3))
	ways := []config.Paging{
		{Param: "p", Next: "/next"}, {Param: "p", Last: "/task", More: "/more"}, {Param: "p", Offset: true, Size: 2},
		{Param: "p", Last: "/at", Overlap: time.Second, Size: 2, Unix: true}, {},
	}
	f.Fuzz(func(t *testing.T, body string, way uint8) {
		r := reader{config.Listing{Items: "/items", Fields: config.ListFields{Task: "/task", Event: "/event", State: "/state", Time: "/at"}, Paging: ways[int(way)%len(ways)]}}
		since := pawl.TimeOf(time.Unix(1700000000, 0))
		var c Cursor
		for range 3 { // The same answer again is a circle, or an end.
			p, reason := r.read([]byte(body), c, since)
			for _, e := range p.Entries {
				if e.Task == "" || e.Event == "" || len(e.Task) > maxID || len(e.Event) > maxID || e.At.IsSet() && e.At < since {
					t.Errorf("told %+v", e)
				}
			}
			if reason != "" || p.Next == nil {
				return
			}
			if len(p.Next.At) > maxCursor || p.Next.At == c.At || p.Next.Pages != c.Pages+1 {
				t.Errorf("%+v leads to %+v", c, *p.Next)
			}
			again, err := ParseCursor(p.Next.Text())
			if err != nil || string(again.Text()) != string(p.Next.Text()) {
				t.Errorf("%+v: %v", again, err)
			}
			c = again
		}
	})
}

func FuzzParseCursor(f *testing.F) {
	f.Add(`{"at":"x","pages":3,"told":"AAAAAAAAAAE=","mark":7,"power":2,"lap":1}`)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseCursor([]byte(text))
		if err != nil {
			return
		}
		if again, err := ParseCursor(c.Text()); err != nil || again.At != c.At || len(again.Told) != len(c.Told) {
			t.Errorf("%+v %v", again, err)
		}
		c.seen()
	})
}
