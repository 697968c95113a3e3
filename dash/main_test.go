package dash_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"oversell/dash"
	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

const token = "class"

// testLab is the lab of all tests but those with ownLab. Parallel tests may use it if they do not set the
// stock, which deletes the names of other tests. Its nginx also serves the pages.
var testLab *rig.Rig

// labs are for the parallel tests that set the stock.
var labs pool

// pool lends each lab to one test at a time, since a test needs a stock and servers of its own.
type pool struct {
	start   sync.Once
	err     error // of start
	free    chan *rig.Rig
	started []*rig.Rig
}

func (p *pool) open() {
	size := 1
	if rigtest.IsNightly() {
		size = 3
	}
	p.free = make(chan *rig.Rig, size)
	cfg := rigtest.Guest(rig.FullLab(testLab.Config().Binary, token))
	for range size {
		r, err := rig.Start(context.Background(), cfg)
		if err != nil {
			p.err = err
			return
		}
		p.started = append(p.started, r)
		p.free <- r
	}
}

func (p *pool) close() (err error) {
	for _, r := range p.started {
		err = errors.Join(err, r.Close())
	}
	return err
}

// ownLab makes a test parallel, and takes a lab for it until its end.
func ownLab(t *testing.T) *rig.Rig {
	t.Helper()
	t.Parallel()
	labs.start.Do(labs.open)
	if labs.err != nil {
		t.Fatal(labs.err)
	}
	lab := <-labs.free
	t.Cleanup(func() { labs.free <- lab })
	return lab
}

func TestMain(m *testing.M) {
	// The parallel tests mostly wait, so two at a time would be too few on two processors.
	_ = flag.Set("test.parallel", fmt.Sprint(max(4, runtime.GOMAXPROCS(0)))) // of a valid name
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	cfg := rigtest.Guest(rig.FullLab("", token)) // no test stops its servers
	cfg.Page = listener.Addr().String()
	rigtest.MainWith(m, cfg, func(r *rig.Rig) {
		testLab = r
		// Experiments run in a separate lab, whose replicas are the same program as testLab's
		// replicas.
		page := dash.New(dash.Config{Lab: r.Addresses(), Binary: r.Config().Binary, QuickLessons: true})
		go func() { _ = http.Serve(listener, page) }() //nolint:gosec // for as long as the tests run
	}, labs.close, closeChromium)
}

// address returns the address of a page with the token, like the link that the lab prints.
func address(path string) string { return testLab.Addresses().Target + path + "#token=" + token }

// ownPage starts a page's server for one test, which leaves a state that other tests must not see. It
// returns a function like address. At the end of the test, it stops the job and the server.
func ownPage(t *testing.T) func(path string) string {
	t.Helper()
	return pageOf(t, testLab)
}

// pageOf is ownPage for another lab.
func pageOf(t *testing.T, lab *rig.Rig) func(path string) string {
	t.Helper()
	page := dash.New(dash.Config{Lab: lab.Addresses(), Binary: lab.Config().Binary, QuickLessons: true})
	server := httptest.NewServer(page)
	t.Cleanup(func() {
		page.Close()
		server.CloseClientConnections()
		server.Close()
	})
	return func(path string) string { return server.URL + path + "#token=" + token }
}

// window is a tab of a browser.
type window interface{ context.Context }

// chromium is the headless browser of all tests. The first test that needs it starts it: each start
// takes about a second of the processor.
var chromium struct {
	start sync.Once
	err   error // of start
	first context.Context
	end   func() // of its process
}

func closeChromium() error {
	if chromium.first == nil {
		return nil
	}
	defer chromium.end()
	return chromedp.Cancel(chromium.first)
}

// browser opens a tab with cookies and storage of its own, like a browser that has just been
// installed. lang is the language of its user; without it, English.
func browser(t *testing.T, lang ...string) window {
	t.Helper()
	chromium.start.Do(func() {
		options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(rigtest.Chromium(t)), chromedp.NoSandbox, chromedp.WindowSize(1280, 900))
		var ctx context.Context
		options = append(options, chromedp.WSURLReadTimeout(2*time.Minute)) // 20 s are too short on a busy machine
		ctx, chromium.end = chromedp.NewExecAllocator(context.Background(), options...)
		first, _ := chromedp.NewContext(ctx)
		chromium.first, chromium.err = first, chromedp.Run(first) //nolint:fatcontext // assigned once, for all tests
	})
	if chromium.err != nil {
		t.Fatal(chromium.err)
	}
	tab, closeTab := chromedp.NewContext(chromium.first, chromedp.WithNewBrowserContext())
	t.Cleanup(closeTab)
	// Open the tab without a time limit. So do can read the page after the time limit of the returned
	// window. Only one tab has the focus of the user; the others must take keys as well.
	languages := network.Headers{"Accept-Language": strings.Join(append(lang, "en"), ",")}
	if err := chromedp.Run(tab, emulation.SetFocusEmulationEnabled(true), network.Enable(), network.SetExtraHTTPHeaders(languages)); err != nil {
		t.Fatal(err)
	}
	limit := 5 * time.Minute
	if rigtest.IsNightly() { // a test takes screenshots of each page, while other tests run
		limit = 20 * time.Minute
	}
	limited, cancelLimit := context.WithTimeout(tab, limit)
	t.Cleanup(cancelLimit)
	return limited
}

// do runs actions one by one. If an action fails, do fails the test and prints the page's text.
func do(t *testing.T, tab window, actions ...chromedp.Action) {
	t.Helper()
	if err := chromedp.Run(tab, actions...); err != nil {
		// Read the page's text for the error message, even if the tab's time limit has passed.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(tab), 10*time.Second)
		defer cancel()
		var seen string
		if err := chromedp.Run(ctx, chromedp.Evaluate(`document.body.innerText`, &seen)); err != nil {
			seen = "(the page does not answer: " + err.Error() + ")"
		}
		t.Fatalf("%v; the page says:\n%s", err, seen)
	}
}

// reads waits until the element that matches selector contains the text.
func reads(selector, text string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		last := "(nothing: it was never read)"
		for {
			// Find and read the element in one script. Between two scripts, the page could replace
			// the element.
			var seen string
			err := chromedp.Run(ctx, chromedp.Evaluate(fmt.Sprintf("document.querySelector(%q)?.textContent ?? ''", selector), &seen))
			// The script fails while the browser changes the page, and after the tab's time limit.
			if err == nil {
				last = seen
			}
			if err == nil && strings.Contains(seen, text) {
				return nil
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("%s never contained %q; it contained %q last: %w", selector, text, last, errors.Join(ctx.Err(), err))
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
}

// recordParts begins to record the texts of the page's parts. A short state, such as the start of an
// experiment, may be over before the test reads the page.
func recordParts() chromedp.Action {
	return chromedp.Evaluate(`(() => {
		window.showed = {};
		new MutationObserver(() => {
			for (const part of document.querySelectorAll('[id^=part-]')) (showed[part.id] ??= new Set()).add(part.textContent);
		}).observe(document.body, {subtree: true, childList: true, characterData: true});
	})()`, nil)
}

// showed waits until the part has contained the text at some time since recordParts, in this page.
func showed(part, text string) chromedp.Action {
	return chromedp.Poll(fmt.Sprintf(`[...(showed[%q] ?? [])].some(seen => seen.includes(%q))`, part, text), nil, chromedp.WithPollingTimeout(0))
}

// inOneScript runs a script on the element that matches selector, again until it returns true. The actions of
// chromedp find the element first, and fail if the page replaces it before they use it.
func inOneScript(selector, script string) chromedp.Action {
	text := fmt.Sprintf(`(e => e ? (%s) : false)(document.querySelector(%q))`, script, selector)
	return chromedp.Poll(text, nil, chromedp.WithPollingTimeout(0), chromedp.WithPollingInterval(50*time.Millisecond))
}

// focus gives the focus to an element.
func focus(selector string) chromedp.Action {
	return inOneScript(selector, `e.focus(), document.activeElement === e`)
}

// setValue sets the value of a field or a choice, as its user does.
func setValue(selector, value string) chromedp.Action {
	return inOneScript(selector, fmt.Sprintf(`e.value = %q, ['input', 'change'].forEach(name => e.dispatchEvent(new Event(name, {bubbles: true}))), e.value === %[1]q`, value))
}

// expectClick is a script that notes in a page whether the next click hits the element. A click beside
// it has no effect. It could move the element again, for example by opening a part of the page above
// it, and then every further click could miss.
const expectClick = `(selector => {
	window.clicked ?? addEventListener('click', e => {
		if (window.clicked) return;
		window.clicked = !!e.target.closest(window.expected);
		if (!window.clicked) { e.preventDefault(); e.stopImmediatePropagation(); }
	}, true);
	window.expected = selector;
	window.clicked = false;
})`

// press clicks on an element. If the page replaces the element meanwhile, or moves it away from the
// mouse, press clicks again, after the page had time to draw.
func press(selector string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		for {
			err := chromedp.Run(ctx,
				chromedp.Evaluate(expectClick+`(`+strconv.Quote(selector)+`)`, nil),
				chromedp.Click(selector, chromedp.ByQuery))
			missed := false
			if err == nil { // an error of this script means that the click has opened another page
				_ = chromedp.Run(ctx, chromedp.Evaluate(`window.clicked === false`, &missed))
			}
			var gone *cdproto.Error
			if !missed && !errors.As(err, &gone) {
				return err
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("no click has hit %s: %w", selector, errors.Join(ctx.Err(), err))
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
}

// pictures fails if a page is wider than the screen, on a wide screen or on a telephone. In the nightly
// tests, it also writes screenshots to results/pages for people: of both, light and dark.
func pictures(t *testing.T, tab window, name string) {
	t.Helper()
	folder := filepath.Join("..", "results", "pages")
	for _, width := range []int64{390, 1280} {
		do(t, tab, look(width, "light"))
		if wider(t, tab) {
			t.Errorf("%s at %d: it is wider than the screen", name, width)
		}
		for _, scheme := range []string{"dark", "light"} {
			if !rigtest.IsNightly() {
				continue
			}
			// A full screenshot draws what sticks to the window where the window is.
			do(t, tab, look(width, scheme), chromedp.Evaluate(`scrollTo(0, 0)`, nil))
			save(t, tab, filepath.Join(folder, fmt.Sprintf("%s-%d-%s.png", name, width, scheme)))
		}
	}
}

// wider reports whether the page is wider than the window.
func wider(t *testing.T, tab window) (is bool) {
	t.Helper()
	do(t, tab, chromedp.Evaluate(`document.documentElement.scrollWidth > document.documentElement.clientWidth`, &is))
	return is
}

// save writes a screenshot of the whole page.
func save(t *testing.T, tab window, path string) {
	t.Helper()
	var picture []byte
	do(t, tab, chromedp.FullScreenshot(&picture, 100))
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, picture, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
