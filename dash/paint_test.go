package dash_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"oversell/lab/rig/rigtest"
)

// allPages returns the paths of all kinds of pages.
func allPages() []string {
	return []string{
		"/", "/dash/break", "/dash/break/pause/redis", "/dash/step", "/dash/learn/redis", "/dash/learn/primitives/semaphore",
		"/dash/judge", "/dash/course/primitives", "/dash/course/shop", "/dash/course", "/dash/course/01-overselling", "/dash/vote", "/dash/learn/none-such",
	}
}

// firstPaint is a script that waits for the first paint, and returns its time in ms.
const firstPaint = `new Promise(done => new PerformanceObserver(list => {
	const first = list.getEntriesByName('first-contentful-paint')[0];
	if (first) done(first.startTime);
}).observe({ type: 'paint', buffered: true }))`

// TestFirstPaint logs the time until the browser first paints each page, the median of several loads.
// The time has no limit, because other load on the machine changes it.
func TestFirstPaint(t *testing.T) {
	rigtest.Nightly(t, "TestPages, TestSmallFiles of ./dash")
	tab := browser(t)
	check := elsewhere(t, tab, testLab.Addresses().Target+"/")
	for _, path := range allPages() {
		do(t, tab, chromedp.Navigate(address(path)))
		var times []float64
		for range 3 {
			var ms float64
			do(t, tab, chromedp.Reload(), chromedp.Evaluate(firstPaint, &ms, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
			times = append(times, ms)
		}
		slices.Sort(times)
		t.Logf("%s: first paint after %.0f ms, %.0f to %.0f", path, times[len(times)/2], times[0], times[len(times)-1])
	}
	check()
}

// shifts is a script that returns how far the page has moved what it shows, since it was loaded: a picture that
// moves by half the height of the window counts .5. A move within half a second after a press does not count.
const shifts = `new Promise(done => {
	let sum = 0;
	new PerformanceObserver(list => list.getEntries().forEach(e => { if (!e.hadRecentInput) sum += e.value; })).observe({ type: 'layout-shift', buffered: true });
	setTimeout(() => done(sum), 200);
})`

// steady checks that a page has not moved what it shows.
func steady(t *testing.T, tab window) {
	t.Helper()
	var sum float64
	do(t, tab, chromedp.Evaluate(shifts, &sum, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	if sum > .05 {
		t.Errorf("the page has moved what it shows: %.3f", sum)
	}
	t.Logf("layout shift %.3f", sum)
}

// elsewhere returns a function that fails for each request of the tab's pages, from now on, to another host.
func elsewhere(t *testing.T, tab window, ours string) (check func()) {
	t.Helper()
	var mu sync.Mutex
	others := map[string]bool{}
	chromedp.ListenTarget(tab, func(event any) {
		if sent, is := event.(*network.EventRequestWillBeSent); is && !strings.HasPrefix(sent.Request.URL, ours) && !strings.HasPrefix(sent.Request.URL, "data:") {
			mu.Lock()
			defer mu.Unlock()
			others[sent.Request.URL] = true
		}
	})
	return func() {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		for url := range others {
			t.Errorf("a page requests %s", url)
		}
	}
}

// TestSmallFiles checks that the scripts and styles of each page together are small, before they are compressed: a
// class may have a slow network.
func TestSmallFiles(t *testing.T) {
	for _, path := range allPages() {
		if sum := served(t, path); sum < 30_000 || sum > 60_000 {
			t.Errorf("%s: %d bytes of script and style", path, sum)
		}
	}
}

// served returns the size of the scripts and styles that a page names.
func served(t *testing.T, path string) (sum int) {
	t.Helper()
	_, page := send(t, http.MethodGet, path, "", nil)
	for _, file := range regexp.MustCompile(`(?:src|href)="(/dash/[^"]+\.(?:js|css))"`).FindAllStringSubmatch(page, -1) {
		status, body := send(t, http.MethodGet, file[1], "", nil)
		if status != http.StatusOK {
			t.Errorf("%s: %d", file[1], status)
		}
		sum += len(body)
	}
	return sum
}

// TestPolicy checks that each page forbids scripts, styles and streams of other hosts and inside the page.
func TestPolicy(t *testing.T) {
	for _, path := range append(allPages(), "/dash/static/dash.js") {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, testLab.Addresses().Target+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		policy := response.Header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s lacks %s: %q", path, want, policy)
			}
		}
		if strings.Contains(policy, "unsafe") {
			t.Errorf("%s: %s", path, policy)
		}
	}
}
