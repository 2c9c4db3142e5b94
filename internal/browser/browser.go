// Package browser drives a real Chromium through the console of a real node, for
// tests. What a page writes to the browser's console, and every request that
// leaves the console or fails, is a fault of the test.
package browser

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Browser is a running Chromium. Its profile is empty and ends with the test.
type Browser struct {
	t   testing.TB
	ctx context.Context
	// base is the origin of the console.
	base string
}

// patience bounds what a page may take to show what is waited for: a machine may
// be slow, and a test that waits in vain fails in the end.
const patience = 60 * time.Second

// Start starts a browser for the console of the node whose admin listener is at
// base.
func Start(t testing.TB, base string) *Browser {
	t.Helper()
	path, err := chromium(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()), chromedp.Flag("disable-dev-shm-usage", true),
		// Nothing but the node is ever asked.
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"), chromedp.Flag("no-proxy-server", true),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
	)
	allocator, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, closeBrowser := chromedp.NewContext(allocator)
	t.Cleanup(func() { closeBrowser(); stop() })
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	return &Browser{t, ctx, base}
}

// Tab is one tab with cookies of its own.
type Tab struct {
	t    testing.TB
	ctx  context.Context
	base string

	mu sync.Mutex
	// faults are what the browser complained of, expected what it may.
	faults   []string
	expected []string
}

// Tab opens one for a test. At its end nothing may have gone wrong in the tab.
func (b *Browser) Tab(t testing.TB) *Tab {
	t.Helper()
	ctx, stop := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	tab := &Tab{t: t, ctx: ctx, base: b.base}
	t.Cleanup(func() {
		stop()
		for _, fault := range tab.complaints() {
			t.Errorf("the browser: %s", fault)
		}
	})
	if err := chromedp.Listen(ctx, tab.listen); err != nil {
		t.Fatal(err)
	}
	tab.do("begin", command(log.Enable, cdp.Empty{}), command(network.Enable, network.EnableParams{}))
	tab.As(Looks()[0])
	return tab
}

// command is an action that gives the browser one command.
func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

// Expect lets the browser complain of something, such as an answer that is
// refused on purpose.
func (t *Tab) Expect(part string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expected = append(t.expected, part)
}

func (t *Tab) complaints() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var left []string
next:
	for _, fault := range t.faults {
		for _, part := range t.expected {
			if strings.Contains(fault, part) {
				continue next
			}
		}
		left = append(left, fault)
	}
	return left
}

func (t *Tab) listen(event any) {
	fault := ""
	switch e := event.(type) {
	case *log.EventEntryAdded:
		if level := string(e.Entry.Level); level == "error" || level == "warning" {
			fault = fmt.Sprintf("%s %s %s", level, e.Entry.Text, e.Entry.URL)
		}
	case *runtime.EventExceptionThrown:
		fault = "exception: " + e.ExceptionDetails.Text
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			fault = fmt.Sprintf("console.%s in a script", e.Type)
		}
	case *network.EventRequestWillBeSent:
		if url := e.Request.URL; !strings.HasPrefix(url, t.base+"/console") && !strings.HasPrefix(url, "data:") && url != "about:blank" {
			fault = "a request elsewhere: " + url
		}
	}
	if fault == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.faults = append(t.faults, fault)
}

// do runs steps, bounded.
func (t *Tab) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	t.t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.fail(what, err)
	}
}

// ask runs an action that gives a value, bounded.
func ask[T any](t *Tab, what string, action chromedp.Action[T]) T {
	t.t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	if err != nil {
		t.fail(what, err)
	}
	return value
}

// fail ends the test with what the page showed.
func (t *Tab) fail(what string, err error) {
	t.t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, 5*time.Second)
	defer cancel()
	at, _ := chromedp.Run(ctx, chromedp.Location())
	text, _ := chromedp.Run(ctx, chromedp.Text(chromedp.CSS("body")))
	t.t.Fatalf("%s: %v\nat %s:\n%.2000s", what, err, at, text)
}

// Open opens a page of the console and waits until it is there.
func (t *Tab) Open(path string) {
	t.t.Helper()
	t.do("open "+path, chromedp.Navigate(t.base+path), chromedp.WaitReady(chromedp.CSS("#main")))
}

// Login logs in with an API key.
func (t *Tab) Login(key string) {
	t.t.Helper()
	t.Open("/console/login")
	t.Fill("#key", key)
	t.Submit(".login form")
	t.Wait("#who")
}

// Fill puts a text into a field, or chooses from a list.
func (t *Tab) Fill(selector, text string) {
	t.t.Helper()
	t.do("fill "+selector, chromedp.SetValue(chromedp.CSS(selector), text))
}

// Click clicks on something that is visible.
func (t *Tab) Click(selector string) {
	t.t.Helper()
	t.do("click "+selector, chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// Submit sends a form, by its button where it has one, and waits for the page that
// follows.
func (t *Tab) Submit(form string) {
	t.t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	send := fmt.Sprintf("document.querySelector(%q).requestSubmit()", form)
	if _, err := chromedp.RunResponse(ctx, chromedp.Evaluate[chromedp.Void](send)); err != nil {
		t.fail("send "+form, err)
	}
	t.do("the page after "+form, chromedp.WaitReady(chromedp.CSS("#main")))
}

// Wait waits until something is visible.
func (t *Tab) Wait(selector string) {
	t.t.Helper()
	t.do("wait for "+selector, chromedp.WaitVisible(chromedp.CSS(selector)))
}

// Text is the visible text of something.
func (t *Tab) Text(selector string) string {
	t.t.Helper()
	return ask(t, "read "+selector, chromedp.Text(chromedp.CSS(selector), chromedp.NodeVisible))
}

// HTML is the whole document as it stands.
func (t *Tab) HTML() string {
	t.t.Helper()
	return ask(t, "read the page", chromedp.OuterHTML(chromedp.CSS("html")))
}

// Run runs a script in the page.
func (t *Tab) Run(script string) {
	t.t.Helper()
	t.do("run "+script, chromedp.Evaluate[chromedp.Void](script))
}

// Ask is what an expression, or the promise that it gives, comes to in the page.
func Ask[T any](t *Tab, expression string) T {
	t.t.Helper()
	return ask(t, expression, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// Count is how many elements there are.
func (t *Tab) Count(selector string) int {
	t.t.Helper()
	return Ask[int](t, fmt.Sprintf("document.querySelectorAll(%q).length", selector))
}

// Path is the address of the page, without the origin.
func (t *Tab) Path() string {
	t.t.Helper()
	return strings.TrimPrefix(ask(t, "read the address", chromedp.Location()), t.base)
}

// Look is how a page is looked at.
type Look struct {
	Name          string
	Width, Height int64
	Dark          bool
}

// Looks are those that every page is held against: light, dark and narrow.
func Looks() []Look {
	return []Look{{Name: "light", Width: 1280, Height: 900}, {Name: "dark", Width: 1280, Height: 900, Dark: true}, {Name: "narrow", Width: 360, Height: 740}}
}

// As looks at pages in another way from now on.
func (t *Tab) As(l Look) {
	t.t.Helper()
	scheme := "light"
	if l.Dark {
		scheme = "dark"
	}
	t.do("look "+l.Name, chromedp.EmulateViewport(l.Width, l.Height),
		command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}))
}

// Overflow is by how many pixels the page is wider than its window.
func (t *Tab) Overflow() int {
	t.t.Helper()
	return Ask[int](t, "document.documentElement.scrollWidth - document.documentElement.clientWidth")
}

// Screenshot writes a picture of the whole page into a folder.
func (t *Tab) Screenshot(folder, name string) {
	t.t.Helper()
	png := ask(t, "screenshot", chromedp.FullScreenshot(100))
	if err := os.WriteFile(filepath.Join(folder, name+".png"), png, 0o600); err != nil {
		t.t.Fatal(err)
	}
}
