package dash_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"oversell/lab/rig/rigtest"
)

// TestPages opens each page in a browser, with a result where a page can have one. It checks the page with
// axe-core, and the size of its texts on a projector. The page must fit into a telephone and into a
// projector, and send no request to another host.
func TestPages(t *testing.T) {
	script, page := axe(t), pageOf(t, ownLab(t))
	fill(t, page)
	tab := browser(t)
	check := elsewhere(t, tab, strings.TrimSuffix(page("/"), "#token="+token))
	projector := func(on bool) chromedp.Action {
		return chromedp.Tasks{chromedp.KeyEvent("p"), chromedp.WaitVisible(fmt.Sprintf(`#projector[aria-pressed=%t]`, on), chromedp.ByQuery)}
	}
	for _, path := range allPages() {
		do(t, tab, chromedp.Navigate(page(path)), chromedp.WaitVisible("h1", chromedp.ByQuery))
		if path == "/dash/break/pause/redis" {
			do(t, tab, press(`[value=show]`), reads(`.verdict`, "✗"), chromedp.WaitVisible(`#film .rung`, chromedp.ByQuery))
		}
		accessible(t, tab, script, path)
		pictures(t, tab, "page"+strings.ReplaceAll(path, "/", "-"))
		do(t, tab, projector(true))
		large(t, tab, path)
		do(t, tab, projector(false))
	}
	check()
	t.Run("Chinese", func(t *testing.T) { inChinese(t, page) })
}

// fill does the tasks that take little time, without a browser, so that the pages show results. The HTML of
// each page must show them before any stream is open.
func fill(t *testing.T, page func(path string) string) {
	t.Helper()
	read := func(path string) string {
		t.Helper()
		_, body := send(t, http.MethodGet, page(path), "", nil)
		return body
	}
	for _, task := range []struct{ path, before, start, form, result string }{
		{"/", "appears here as it ends", "/dash/run/start", "strategy=none&strategy=redis&clients=10&loops=10&stock=100&hold=0&wait=10000", `"/dash/learn/redis"`},
		{"/dash/course/shop", "No runs yet", "/dash/course/shop/start", "scenario=coupon&guard=unique", `coupon, <code>unique</code>`},
		{"/dash/course/primitives", "No requests yet", "/dash/course/primitives/send", "send=read:1&name=pages&backend=redis&hold=0&wait=1000", "redis pages"},
		{"/dash/course/01-overselling", "", "/dash/course/01-overselling/run", "question=0&choice=1", `class="said`},
		{"/dash/step", "No round is open", "/dash/step/begin", "strategy=none", "has sent no request yet"},
	} {
		if body := read(task.path); !strings.Contains(body, task.before) {
			t.Errorf("%s lacks %q before anything has run:\n%s", task.path, task.before, body)
		}
		started := func() bool { // the job before may not have ended when its result is there
			status, _ := send(t, http.MethodPost, page(task.start), task.form, authorized())
			return status == http.StatusNoContent
		}
		if !until(t, started) || !until(t, func() bool { return strings.Contains(read(task.path), task.result) }) {
			t.Fatalf("%s never showed %s:\n%s", task.path, task.result, read(task.path))
		}
		if task.before != "" && strings.Contains(read(task.path), task.before) {
			t.Errorf("%s still says %q", task.path, task.before)
		}
	}
}

// large fails if a text of the page is small for a projector, or if the page is wider than the screen.
func large(t *testing.T, tab window, path string) {
	t.Helper()
	for _, s := range screens()[:2] {
		var small []string
		do(t, tab, s.look("light"), chromedp.Evaluate(smallTexts, &small))
		for _, text := range small {
			t.Errorf("%s at %v: %s", path, s, text)
		}
		if wider(t, tab) {
			t.Errorf("%s at %v: it is wider than the screen", path, s)
		}
		if rigtest.IsNightly() {
			save(t, tab, filepath.Join("..", "results", "pages", fmt.Sprintf("projector%s-%d.png", strings.ReplaceAll(path, "/", "-"), s.Width)))
		}
	}
}

// smallTexts returns the visible texts of less than 22 pixels.
const smallTexts = `[...document.querySelectorAll('body *')].filter(e =>
	[...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) && e.checkVisibility() && e.getBoundingClientRect().left >= 0 &&
	parseFloat(getComputedStyle(e).fontSize) * e.currentCSSZoom < 22).map(e => getComputedStyle(e).fontSize + ': ' + e.outerHTML.slice(0, 120))`
