package dash_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"oversell/dash"
	"oversell/lab/rig/rigtest"
)

// inSightNow is a script that reports whether the browser window shows the begin of the sentence about
// the first violation.
const inSightNow = `(at => at.left > 0 && at.left < innerWidth && at.top >= 0 && at.top < innerHeight)(document.querySelector('#film :target text:last-of-type').getBoundingClientRect())`

// TestBreakInABrowser runs an experiment from the page of a result, while another tab shows the matrix. It
// opens the timeline, and goes to the violation. It then repeats the experiment, and stops a run of all
// locks. TestPredict answers the question of the page.
func TestBreakInABrowser(t *testing.T) {
	address, tab := pageOf(t, ownLab(t)), browser(t)
	do(t, tab, chromedp.Navigate(address("/dash/break/pause/redis")), chromedp.WaitReady(`body[data-live]`, chromedp.ByQuery))
	matrix, closeMatrix := chromedp.NewContext(tab)
	defer closeMatrix()
	const cell = `td[id="part-pause.redis"]`
	do(t, matrix, chromedp.Navigate(address("/dash/break")), chromedp.WaitReady(`body[data-live]`, chromedp.ByQuery))
	do(t, tab, press(`#result .go`), reads(`#part-now`, "a separate lab"))
	do(t, matrix, reads(cell, "running"), reads(cell, "in this lab ✗ broken"), reads(`#part-now .harm`, "pause, redis: broken"))
	pictures(t, matrix, "break")
	inView(t, matrix, `#part-now .harm`, "light")
	do(t, tab, chromedp.WaitReady(`#result:not([data-run=""])`, chromedp.ByQuery)) // by itself
	checkTimeline(t, tab)
	accessible(t, tab, axe(t), "a result with its timeline")
	if !rigtest.IsNightly() {
		return // each experiment starts a lab
	}
	var run string
	do(t, tab, chromedp.Evaluate(`document.querySelector('#result').dataset.run`, &run))
	do(t, tab,
		screens()[2].look("light"),
		press(`#result .go`),
		chromedp.WaitVisible(`#result:not([data-run="`+run+`"])`, chromedp.ByQuery), // by itself
		reads(`.verdict`, "redis is broken"),
		visible(`.verdict`),
	)
	do(t, tab, // all locks take minutes, so the test surely finds them running
		reads(`#part-now`, "Done"),
		chromedp.Navigate(address("/dash/break")),
		press(`details:has(form.plan) > summary`),
		setValue(`form.plan select[name=hazard]`, "pause"),
		press(`form.plan .go`),
		press(`#part-now button`),
		reads(`#part-now`, "Stopped"),
	)
}

// checkTimeline checks the page of the broken result, and goes to the violation in its timeline.
func checkTimeline(t *testing.T, tab window) {
	t.Helper()
	var inSight bool
	do(
		t, tab,
		reads(`.verdict`, "redis is broken"),
		reads(`.verdict`, "The card claims the same"),
		reads(`.next`, "Add a fencing token"),
		reads(`.next`, "A strategy that survives it: for-update"),
		reads(`.cause`, "The lease of A ended at"),
		chromedp.WaitVisible(`#film .lapse`, chromedp.ByQuery),
		reads(`#result`, "oversell break pause redis"),
		reads(`.film .moves li:nth-child(2)`, "The process of A is frozen."),
		reads(`#result`, "oversell break --plan 'A sells at writing, A freezes"),
		chromedp.WaitVisible(`#film .both`, chromedp.ByQuery),
		reads(`#film`, "writes 9 over 9"),
		press(`a[href="#run.picture-violation"]`),
		chromedp.Evaluate(inSightNow, &inSight),
	)
	if !inSight {
		t.Error("the link to the violation does not show it")
	}
	do(t, tab, look(390, "dark"), press(`a[href="#run.picture-violation"]`), chromedp.Evaluate(inSightNow, &inSight), look(1280, "light"))
	if !inSight {
		t.Error("on a telephone, the link to the violation does not show it")
	}
	pictures(t, tab, "result")
	do(t, tab, chromedp.Evaluate(`scrollTo(0, 0)`, nil))
	inView(t, tab, `.verdict`, "light", "dark")
}

// TestLearnInABrowser: the earlier list of strategies leads to the matrix of all. The Chinese page of a strategy
// unfolds its code with the keys.
func TestLearnInABrowser(t *testing.T) {
	t.Parallel()
	address, tab := ownPage(t), browser(t, "zh")
	do(t, tab,
		chromedp.Navigate(address("/dash/learn")), chromedp.WaitReady(`.matrix a[href="/dash/learn/zk"]`, chromedp.ByQuery),
		chromedp.Navigate(address("/dash/learn/none")), chromedp.WaitReady(`body[data-live]`, chromedp.ByQuery),
		reads(`#flaws`, "会丢失更新"),
		reads(`.flaws`, "race"),
		reads(`.verdict-row`, "✗ race"),
		reads(`.code.plain`, ") Deduct("),
		reads(`#code`, "package local"),
		reads(`main`, "教程"),
		tabTo(`details:has(#code) summary`), keys(kb.Enter), chromedp.WaitVisible(`#code .code`, chromedp.ByQuery),
	)
	pictures(t, tab, "lesson")
}

// TestBreakFromLearn starts an experiment on the Chinese page of a strategy that it breaks, and checks
// the result.
func TestBreakFromLearn(t *testing.T) {
	rigtest.Nightly(t, "TestLearnInABrowser, TestBreakInABrowser of ./dash")
	address := pageOf(t, ownLab(t))
	tab := browser(t, "zh")
	do(t, tab,
		chromedp.Navigate(address("/dash/learn/none")),
		press(`.flaws a[href="/dash/break/race/none"]`), press(`[value=show]`), press(`#result .go`),
		reads(`h1`, "同一进程里的两个请求"),
		reads(`.verdict`, "none 被破坏"),
		reads(`#film`, "丢失更新"),
	)
	pictures(t, tab, "result-zh")
	do(t, tab, reads(`#part-now`, "完成")) // the next test also starts a job
	do(t, tab,
		chromedp.Navigate(address("/dash/learn/none")),
		chromedp.WaitReady(`.verdict-row .harm.here[href^="/dash/break/race/none"]`, chromedp.ByQuery),
	)
}

func link(id string) string { return `a[id="` + id + `"]` }

// TestBreakPages requests the pages from a machine without servers, and pages that do not exist.
func TestBreakPages(t *testing.T) {
	unable := dash.New(dash.Config{Lab: testLab.Addresses()})
	defer unable.Close()
	for path, want := range map[string]struct {
		status int
		says   string
	}{
		"/dash/break":                         {200, "cannot run experiments"},
		"/dash/break/pause/redis":             {200, "Start a lab with: oversell lab"},
		"/dash/break/pause/redis?fenced=true": {200, "redis with a fencing token"},
		"/dash/break/failover/none":           {200, "does not apply"},
		"/dash/break?q=chaos":                 {200, "random plans of moves and faults"},
		"/dash/break/chaos/redis":             {200, "Start a lab with: oversell lab"},
		"/dash/break/flood/redis":             {404, "does not exist"},
		"/dash/break/pause/hope":              {404, "does not exist"},
		"/dash/learn/hope":                    {404, "does not exist"},
		"/dash/learn/redis":                   {200, "redis.go"},
		"/dash/static/frame.css":              {200, ".ladder"},
	} {
		w := httptest.NewRecorder()
		unable.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		body, _ := io.ReadAll(w.Result().Body)
		if w.Code != want.status || !strings.Contains(string(body), want.says) {
			t.Errorf("%s: %d, want %d with %q:\n%s", path, w.Code, want.status, want.says, body)
		}
		if strings.Contains(string(body), "/dash/break/start") {
			t.Errorf("%s has a button that cannot work", path)
		}
		if strings.Contains(string(body), "style=") || strings.Contains(string(body), "<style") {
			t.Errorf("%s has a style that its policy forbids", path)
		}
	}
}

// TestPlanInABrowser tries a plan with a wrong word, and then the plan without it.
func TestPlanInABrowser(t *testing.T) {
	rigtest.Nightly(t, "TestRefusals, TestBreakInABrowser of ./dash")
	address, tab := pageOf(t, ownLab(t)), browser(t)
	do(
		t, tab,
		chromedp.Navigate(address("/dash/break")), chromedp.WaitReady(`body[data-live]`, chromedp.ByQuery),
		press(`details:has(form.plan) > summary`), press(`form.plan details > summary`), press(`form.plan [value=none]`),
		setValue(`form.plan [name=plan]`, "A sells at read, B flies, A resumes"), press(`form.plan .go`),
		reads(`#notice`, `move 2 of the plan, "B flies"`), visible(`#notice`),
		setValue(`form.plan [name=plan]`, "A sells at read, B sells, A resumes"), press(`form.plan .go`),
		reads(`td[id="part-plan.none"]`, "in this lab ✗ broken"), press(`#part-now .harm`),
		reads(`.verdict`, "none is broken"), reads(`.film .moves li:nth-child(2)`, "B begins a sale."), chromedp.WaitVisible(`#film .ladder`, chromedp.ByQuery),
		reads(`#result`, "oversell break --plan 'A sells at read, B sells, A resumes' none"),
	)
	pictures(t, tab, "plan")
}
