package dash_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"oversell/lab/rig/rigtest"
)

// hidden is a script that says why the user does not see all of an element: another element or a box
// with a scroll bar may hide it. It returns "" if the user sees it. It does not scroll.
const hidden = `(async selector => {
	const element = document.querySelector(selector);
	if (!element) return 'it does not exist';
	const ratio = await new Promise(done => {
		const observer = new IntersectionObserver(all => { observer.disconnect(); done(all[0].intersectionRatio); });
		observer.observe(element);
	});
	const box = element.getBoundingClientRect(), at = JSON.stringify(box);
	if (box.height === 0 || ratio < .99) return ratio + ' of it is in view: ' + at;
	const top = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
	return element.contains(top) ? '' : 'it is covered by ' + top?.outerHTML.slice(0, 100) + ': ' + at;
})`

// visible waits until the user sees all of an element. It never scrolls: the page must do that.
func visible(selector string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		limited, cancel := context.WithTimeout(ctx, 2*time.Minute)
		defer cancel()
		why := "the page did not answer"
		for {
			var now string
			err := chromedp.Run(limited, chromedp.Evaluate(hidden+`(`+strconv.Quote(selector)+`)`, &now,
				func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
			if err == nil {
				why = now
			}
			if err == nil && now == "" {
				return nil
			}
			select {
			case <-limited.Done():
				return fmt.Errorf("%s is not in view: %s", selector, why)
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
}

// inView fails if the user does not see all of an element, on each screen and in each of the styles.
func inView(t *testing.T, tab window, selector string, schemes ...string) {
	t.Helper()
	for _, s := range screens() {
		for _, scheme := range schemes {
			do(t, tab, s.look(scheme))
			if err := chromedp.Run(tab, visible(selector)); err != nil {
				t.Errorf("%v, %s: %v", s, scheme, err)
			}
		}
	}
	do(t, tab, look(1280, "light"))
}

// mainTask is what a class does with a page: the actions, and then the verdict must be in view.
type mainTask struct {
	name, path string
	actions    chromedp.Tasks
	verdict    string
}

func mainTasks() []mainTask {
	return []mainTask{
		{"run", "/", chromedp.Tasks{load("loops", "5"), press(`form.plan .go`), reads(`#verdicts li:nth-child(3)`, "✓ redis")}, `#verdicts`},
		{"break", "/dash/break", nil, link("race.none")},
		{"predict", "/dash/break", chromedp.Tasks{press(link("race.none")), press(`[value=breaks]`), chromedp.WaitReady(`.verdict`, chromedp.ByQuery)}, `.verdict`},
		{"experiment", "/dash/break/race/none", chromedp.Tasks{press(`#result .go`), chromedp.WaitReady(`#result:not([data-run=""])`, chromedp.ByQuery)}, `.verdict`},
		{"result", "/dash/break", chromedp.Tasks{press(`#part-now .harm`), chromedp.WaitReady(`.verdict`, chromedp.ByQuery)}, `.verdict`},
		{"step", "/dash/step?strategy=none", chromedp.Tasks{
			press(`form button.go`), stepAll("a"), stepAll("b"), chromedp.WaitReady(`.sentence`, chromedp.ByQuery),
		}, `.sentence`},
		{"try", "/dash/course/primitives", chromedp.Tasks{press(`button[value="read:3"]`), reads(`.lanes .gone`, "✓")}, `.lanes .gone:nth-child(3) .is`},
		{"lock by hand", "/dash/course/primitives", chromedp.Tasks{
			press(`#try-lock summary`), press(`button[value="lock:1"]`), reads(`.lanes .holding`, "●"), press(`button[value="unlock:1"]`), reads(`.lanes .gone`, "✓"),
		}, `.lanes .gone .is`},
		{"scenario", "/dash/course/shop", chromedp.Tasks{
			press(`#scenario-coupon input[value=none]`), press(`#scenario-coupon .go`), reads(`.outcomes li:nth-child(1)`, "✗"),
		}, `.outcomes li:nth-child(1) .big-verdict`},
		{"another scenario", "/dash/course/shop", chromedp.Tasks{
			press(`#scenario-recharge summary`), press(`#scenario-recharge input[value=none]`), press(`#scenario-recharge .go`), reads(`.outcomes li:nth-child(1)`, "recharge"),
		}, `.outcomes li:nth-child(1) .big-verdict`},
		{"learn none", "/dash/learn/none", nil, `.verdict-row`},
		{"learn redis", "/dash/learn/redis", nil, `.verdict-row`},
		{"course", "/dash/course/01-overselling", chromedp.Tasks{
			press(`#question-0-2`), press(`#part-question-0 .go`), chromedp.WaitReady(`#part-question-0 .said`, chromedp.ByQuery),
		}, `#part-question-0 [data-verdict]`},
		{"course, a run", "/dash/course/01-overselling", chromedp.Tasks{
			press(`#question-1-1`), press(`#part-question-1 .go`), chromedp.WaitReady(`#part-question-1 .said`, chromedp.ByQuery),
		}, `#part-question-1 [data-verdict]`},
	}
}

// stepAll steps a client to its end. A key that is too early is rejected, and does nothing.
func stepAll(client string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		for part := "#part-" + strings.ToUpper(client); ; {
			var over bool
			if err := chromedp.Run(ctx, chromedp.KeyEvent(client), chromedp.Sleep(200*time.Millisecond),
				chromedp.Evaluate(`document.querySelector('`+part+`')?.innerText.includes('■') ?? false`, &over)); err != nil || over {
				return err
			}
		}
	})
}

// TestVerdictsInView does each main task as a user does, who presses and then only looks: the verdict
// must be in view without scrolling, in both styles.
func TestVerdictsInView(t *testing.T) {
	rigtest.Nightly(t, "TestRunInABrowser, TestBreakInABrowser, TestStepIntoALostUpdate, TestTryByHand, TestScenariosInABrowser, TestStrategyFirst, TestCourse of ./dash")
	t.Parallel()
	for _, c := range []struct {
		screen
		lang string
	}{
		{screens()[0], "en"}, {screens()[1], "zh-CN"}, {screens()[2], "en"}, {screens()[2], "zh-CN"},
	} {
		t.Run(fmt.Sprintf("%v %s", c.screen, c.lang), func(t *testing.T) {
			page := pageOf(t, ownLab(t))
			tab := browser(t, c.lang)
			for _, task := range mainTasks() {
				do(t, tab, c.look("light"), chromedp.Navigate(page(task.path)), chromedp.WaitReady(`h1`, chromedp.ByQuery), task.actions)
				for _, scheme := range []string{"light", "dark"} {
					do(t, tab, c.look(scheme))
					if err := chromedp.Run(tab, visible(task.verdict)); err != nil {
						t.Errorf("%s, %s: %v", task.name, scheme, err)
					}
				}
			}
		})
	}
}
