package dash_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"oversell/dash"
)

// get returns the status and the text of a page as the server sends it.
func get(ctx context.Context, s *dash.Server, path string) (status int, body string) {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil).WithContext(ctx))
	return w.Code, w.Body.String()
}

// until waits for a condition, and returns false after five minutes: the run of a scenario is long on a busy machine.
func until(t *testing.T, condition func() bool) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for !condition() {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(50 * time.Millisecond):
		}
	}
	return true
}

// TestManyTabs opens eight tabs, with each page of the menu. A browser opens at most six
// connections to a server, so a hidden tab must not keep a connection.
func TestManyTabs(t *testing.T) {
	first := browser(t)
	live := chromedp.WaitReady(`body[data-live]`, chromedp.ByQuery)
	paths := []string{"/", "/dash/break", "/dash/step", "/dash/learn/redis", "/dash/course/primitives", "/dash/course/shop", "/", "/dash/course/primitives"}
	for i, path := range paths {
		tab := first
		if i > 0 {
			next, closeTab := chromedp.NewContext(first)
			t.Cleanup(closeTab)
			tab = next
		}
		do(t, tab, chromedp.Navigate(address(path)), live, hide(true))
	}
	// The first tab opens its stream again when the user returns to this tab.
	do(t, first, hide(false), live)
}

// hide does what a browser does when the user leaves a tab or returns to it. A Chromium without windows
// has no hidden tabs.
func hide(hidden bool) chromedp.Action {
	return chromedp.Evaluate(fmt.Sprintf(`Object.defineProperty(document, 'hidden', {value: %t, configurable: true});
		document.dispatchEvent(new Event('visibilitychange'))`, hidden), nil)
}

// line is a proxy between the browser and the page's server. It can drop the data of all open streams without
// closing them. New connections still work.
type line struct {
	addr string
	mu   sync.Mutex
	wire []*wire
}

type wire struct{ streams, silent atomic.Bool }

func newLine(t *testing.T, target string) *line {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &line{addr: "http://" + listener.Addr().String()}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			browser, err := listener.Accept()
			if err != nil {
				return
			}
			lab, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", target)
			if err != nil {
				_ = browser.Close()
				continue
			}
			w := &wire{}
			l.mu.Lock()
			l.wire = append(l.wire, w)
			l.mu.Unlock()
			t.Cleanup(func() { _, _ = browser.Close(), lab.Close() })
			go func() { _, _ = io.Copy(lab, browser) }()
			go func() {
				buffer := make([]byte, 32<<10)
				for {
					n, err := lab.Read(buffer)
					if err != nil {
						_ = browser.Close()
						return
					}
					if bytes.Contains(buffer[:n], []byte("text/event-stream")) {
						w.streams.Store(true)
					}
					if w.silent.Load() {
						continue // drops the data without an error
					}
					if _, err := browser.Write(buffer[:n]); err != nil {
						_ = lab.Close()
						return
					}
				}
			}()
		}
	}()
	return l
}

// silence drops all later data of the open streams, and returns the number of these streams.
func (l *line) silence() (streams int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.wire {
		if w.streams.Load() {
			w.silent.Store(true)
			streams++
		}
	}
	return streams
}

// TestSilentLine loses a connection without an error, like a router that drops data. The page must
// notice, connect again and show all changes since then.
func TestSilentLine(t *testing.T) {
	t.Parallel()
	address, tab := ownPage(t), browser(t)
	server, err := url.Parse(address("/"))
	if err != nil {
		t.Fatal(err)
	}
	l := newLine(t, server.Host)
	do(t, tab,
		chromedp.Navigate(l.addr+"/dash/course/primitives#token="+token),
		chromedp.WaitReady(`body[data-live]`, chromedp.ByQuery),
	)
	if streams := l.silence(); streams != 1 {
		t.Fatalf("the page has %d streams", streams)
	}
	const request = "send=read:1&name=silent&backend=redis&hold=0&wait=1000"
	if status, body := send(t, http.MethodPost, address("/dash/course/primitives/send"), request, authorized()); status != http.StatusNoContent {
		t.Fatalf("the request was not sent: %d %s", status, body)
	}
	do(t, tab,
		reads(`#part-places`, "redis silent"),
		chromedp.WaitNotVisible(`#offline`, chromedp.ByQuery),
	)
}

// TestRunThatDidNotBegin: if the service does not answer, the page shows why its run did not begin.
// While the page's server is stopped, the page reports it. After a restart, the page connects again, and does
// not show that run.
func TestRunThatDidNotBegin(t *testing.T) {
	gate := newGate(t)
	begin := func(addr string) (where string, end func()) {
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		addrs := testLab.Addresses()
		addrs.Target = gate.url
		s := dash.New(dash.Config{Lab: addrs})
		server := &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
		go func() { _ = server.Serve(listener) }()
		return listener.Addr().String(), func() { s.Close(); _ = server.Close() }
	}
	addr, end := begin("127.0.0.1:0")
	tab := browser(t)
	do(t, tab,
		chromedp.Navigate("http://"+addr+"/"), chromedp.WaitVisible(`[data-without-token]`, chromedp.ByQuery),
		chromedp.Navigate("about:blank"), // only another page reads the token of a new address
		chromedp.Navigate("http://"+addr+"/#token="+token),
		chromedp.WaitReady(`body[data-live]`, chromedp.ByQuery),
		reads(`#status`, "Nothing has run yet"),
	)
	gate.closed.Store(true)
	do(t, tab,
		press(`button.go`),
		reads(`#status`, "The run ended before its first request."),
		reads(`#status`, "502"),
		reads(`#part-results`, "The last run did not complete: "),
	)
	end()
	do(t, tab, chromedp.WaitVisible(`#offline`, chromedp.ByQuery), reads(`#offline`, "reconnects automatically"))
	_, end = begin(addr)
	defer end()
	do(t, tab, reads(`#status`, "Nothing has run yet"), chromedp.WaitNotVisible(`#offline`, chromedp.ByQuery), chromedp.WaitReady(`body[data-live]`, chromedp.ByQuery))
}

// gate passes requests on to the service. While the gate is closed, it answers 502.
type gate struct {
	url    string
	closed atomic.Bool
}

func newGate(t *testing.T) *gate {
	t.Helper()
	target, err := url.Parse(testLab.Addresses().Target)
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{}
	pass := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.closed.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	g.url = server.URL
	return g
}

// TestMatrixWaitsForTheService: a tab with the matrix of results may stay open while the lab
// restarts. It must get the new matrix even if the service starts after the page's server.
func TestMatrixWaitsForTheService(t *testing.T) {
	gate := newGate(t)
	addrs := testLab.Addresses()
	addrs.Target = gate.url
	var now atomic.Pointer[dash.Server]
	now.Store(dash.New(dash.Config{Lab: addrs}))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { now.Load().ServeHTTP(w, r) }))
	t.Cleanup(func() { now.Load().Close(); server.CloseClientConnections(); server.Close() })
	tab := browser(t)
	do(t, tab, chromedp.Navigate(server.URL+"/dash/break"), chromedp.WaitReady(`[data-live] .matrix table`, chromedp.ByQuery),
		chromedp.Evaluate(`document.querySelector('.matrix table').dataset.old = 'yes'`, nil))
	gate.closed.Store(true)
	now.Swap(dash.New(dash.Config{Lab: addrs})).Close()
	if !until(t, func() bool { return now.Load().Listeners("break") == 1 }) {
		t.Fatal("the tab never connected to the new lab")
	}
	if status, _ := get(t.Context(), now.Load(), "/dash/break"); status != http.StatusServiceUnavailable {
		t.Fatalf("the service does not answer, and the status of the page is %d", status)
	}
	gate.closed.Store(false)
	do(t, tab, chromedp.WaitReady(`.matrix table:not([data-old])`, chromedp.ByQuery))
}

// TestPagesDoNotQueue: two pages need a service that does not answer. The second page must ask the
// service before the first page's request has timed out.
func TestPagesDoNotQueue(t *testing.T) {
	asked, answer := make(chan context.Context, 2), make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- r.Context()
		select {
		case <-answer:
		case <-r.Context().Done():
		}
	}))
	defer silent.Close()
	defer close(answer)
	addrs := testLab.Addresses()
	addrs.Target = silent.URL
	s := dash.New(dash.Config{Lab: addrs})
	defer s.Close()
	var pages sync.WaitGroup
	defer pages.Wait()
	for range 2 {
		pages.Go(func() { _, _ = get(t.Context(), s, "/") })
	}
	first := <-asked
	<-asked
	if first.Err() != nil {
		t.Error("the second page asked only when the first had given up")
	}
}

// TestNoStorage: a browser that blocks local storage must show the page. It must also accept the
// token in the link that the lab prints.
func TestNoStorage(t *testing.T) {
	tab := browser(t)
	do(t, tab,
		chromedp.ActionFunc(func(ctx context.Context) error {
			_, err := page.AddScriptToEvaluateOnNewDocument(`Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('blocked', 'SecurityError') } })`).Do(ctx)
			return err
		}),
		chromedp.Navigate(address("/")),
		chromedp.WaitReady(`body[data-live]`, chromedp.ByQuery),
		chromedp.WaitEnabled(`button.go`, chromedp.ByQuery),
	)
}
