package dash_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/url"
	"os"
	"testing"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// axe returns the script of axe-core (Deque Systems, licence MPL-2.0), which checks a page by the
// rules of WCAG.
func axe(t *testing.T) string {
	t.Helper()
	file, err := os.Open("testdata/axe-4.14.1.min.js.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	script, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	return string(script)
}

// accessible fails for each rule that the page of a tab violates, in the light and the dark style.
func accessible(t *testing.T, tab window, script, page string) {
	t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		var found []struct {
			ID, Help string
			Nodes    []struct{ HTML, FailureSummary string }
		}
		do(t, tab, look(1280, scheme), chromedp.Evaluate(script+`;0`, nil),
			chromedp.Evaluate(`axe.run().then(r => r.violations)`, &found, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
		for _, v := range found {
			t.Errorf("%s, %s: %s: %s, %d times, such as %s: %s", page, scheme, v.ID, v.Help, len(v.Nodes), v.Nodes[0].HTML, v.Nodes[0].FailureSummary)
		}
	}
	do(t, tab, look(1280, "light"))
}

// TestAccessibility checks all pages with axe-core.
func TestAccessibility(t *testing.T) {
	script := axe(t)
	ours := map[string]string{"X-Lab-Token": token}
	one := url.Values{"strategy": {"none", "redis"}, "clients": {"10"}, "loops": {"10"}, "stock": {"100"}, "hold": {"0"}, "wait": {"10000"}}
	if status, body := send(t, http.MethodPost, "/dash/run/start", one, ours); status != http.StatusNoContent {
		t.Fatalf("the run was not started: %d %s", status, body)
	}
	tab := browser(t)
	do(t, tab, chromedp.Navigate(address("/")), reads(`#verdicts`, "✓ redis"), reads(`#part-results`, "redis"))
	for _, path := range []string{
		"/", "/dash/first", "/dash/break", "/dash/step", "/dash/learn", "/dash/learn/redis", "/dash/learn/primitives/semaphore",
		"/dash/judge", "/dash/try", "/dash/shop", "/dash/course", "/dash/course/01-overselling", "/dash/vote", "/dash/learn/none-such",
	} {
		do(t, tab, chromedp.Navigate(address(path)), chromedp.WaitVisible("h1", chromedp.ByQuery))
		accessible(t, tab, script, path)
	}
}

// TestAccessibleStates checks states of pages that need a press: an open round of Step, and a trial's result.
func TestAccessibleStates(t *testing.T) {
	script, page := axe(t), pageOf(t, ownLab(t))
	tab := browser(t)
	do(t, tab, chromedp.Navigate(page("/dash/step?strategy=redis")), press(`form button.go`), reads(`#part-A`, "has sent no request yet"),
		chromedp.KeyEvent("a"), chromedp.WaitVisible(`#part-codeA .at`, chromedp.ByQuery))
	accessible(t, tab, script, "an open round")
	do(t, tab, press(`#end`), chromedp.Navigate(page("/dash/course/01-overselling")),
		press(`#trial-1-1`), press(`#part-trial-1 .go`), chromedp.WaitVisible(`#part-trial-1 .said`, chromedp.ByQuery))
	accessible(t, tab, script, "a trial's result")
	pictures(t, tab, "lesson-result")
}
