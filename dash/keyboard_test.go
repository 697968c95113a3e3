package dash_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"oversell/lab/rig/rigtest"
)

// tabTo presses Tab until the element that matches selector has the focus. It fails after 60 presses.
func tabTo(selector string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		var passed []string
		for len(passed) < 60 {
			var at struct {
				Name  string
				Found bool
			}
			if err := chromedp.Run(ctx, chromedp.KeyEvent(kb.Tab), chromedp.Evaluate(
				`(e => ({ name: e.outerHTML.slice(0, 80), found: e.matches(`+strconv.Quote(selector)+`) }))(document.activeElement)`, &at)); err != nil {
				return err
			}
			if at.Found {
				return nil
			}
			passed = append(passed, at.Name)
		}
		return fmt.Errorf("%s is not among the first %d elements that Tab reaches:\n%s", selector, len(passed), strings.Join(passed, "\n"))
	})
}

// keys presses keys, one after the other, for the element that has the focus.
func keys(keys ...string) chromedp.Action {
	tasks := chromedp.Tasks{}
	for _, key := range keys {
		tasks = append(tasks, chromedp.KeyEvent(key))
	}
	return tasks
}

// TestKeyboard does the main tasks of each page with the keys alone: Tab, Enter, Space, the arrow keys,
// and a, b and u on the page Step. No action clicks, and none sets the focus.
func TestKeyboard(t *testing.T) {
	rigtest.Nightly(t, "TestRunInABrowser, TestBreakInABrowser, TestStepIntoALostUpdate, TestTryByHand, TestScenariosInABrowser, TestLearnInABrowser, TestPresent of ./dash")
	page := pageOf(t, ownLab(t))
	ready := chromedp.WaitReady(`body[data-live]`, chromedp.ByQuery)
	for _, task := range []struct {
		name, path string
		actions    chromedp.Tasks
		verdict    string
	}{
		{"run", "/", chromedp.Tasks{
			ready, tabTo(`form.plan button.go`), keys(kb.Enter), reads(`#verdicts li:nth-child(3)`, "✓ redis"), reads(`#status`, "Finished."),
		}, `#verdicts`},
		{"break", "/dash/break", chromedp.Tasks{
			ready, tabTo(`#part-matrix button`), keys(kb.ArrowDown, kb.ArrowRight, kb.ArrowUp),
			chromedp.WaitReady(`[id="replica-race.none"]:focus`, chromedp.ByQuery), keys(kb.Enter),
			reads(`#part-now`, "replica-race, none: broken"), chromedp.WaitReady(`a[id="replica-race.none"]:focus`, chromedp.ByQuery), keys(kb.Enter),
			reads(`.verdict`, "none is broken"), ready,
		}, `.verdict`},
		{"step", "/dash/step?strategy=none", chromedp.Tasks{
			ready, tabTo(`form button.go`), keys(kb.Enter), reads(`#part-A`, "has sent no request yet"),
			keys("a"), reads(`#part-A`, "has read 10"), keys("a"), reads(`#part-A`, "is about to write 9"),
			keys("u"), chromedp.Poll(`!document.querySelector('#part-A').innerText.includes('is about to write 9')`, nil),
			keys("b"), reads(`#part-B`, "has read 10"), stepAll("a"), stepAll("b"),
			tabTo(`#show`), keys(kb.Enter), reads(`.sentence`, "an update was lost"),
		}, `.sentence`},
		{"try", "/dash/try", chromedp.Tasks{
			ready, tabTo(`button[value="read:1"]`), keys(kb.Enter), reads(`.lanes .gone`, "released"),
		}, `.lanes .gone .is`},
		{"scenarios", "/dash/shop", chromedp.Tasks{
			ready, tabTo(`#scenario-coupon input[name=guard]`), keys(" ", kb.ArrowDown, kb.ArrowUp), chromedp.WaitReady(`#scenario-coupon input[value=none]:checked`, chromedp.ByQuery),
			tabTo(`#scenario-coupon .go`), keys(kb.Enter), reads(`.outcomes li:nth-child(1)`, "✗ broken"), reads(`#part-now`, "Done."),
		}, `.outcomes li:nth-child(1) .big-verdict`},
		{"learn", "/dash/learn", chromedp.Tasks{
			ready, tabTo(`a[href="/dash/learn/none"]`), keys(kb.Enter), chromedp.WaitReady(`.claims-row`, chromedp.ByQuery),
			tabTo(`#code summary`), keys(kb.Enter), chromedp.WaitVisible(`#code .code`, chromedp.ByQuery),
		}, `#code summary`},
		{"course", "/dash/course", chromedp.Tasks{
			ready, tabTo(`a[href="/dash/course/01-overselling"]`), keys(kb.Enter), chromedp.WaitReady(`#trial-0-1`, chromedp.ByQuery), ready,
			tabTo(`#trial-0-1`), keys(" "), tabTo(`#part-trial-0 button.go`), keys(kb.Enter), reads(`#part-trial-0 .said`, "The class was right"),
		}, `#part-trial-0 .said`},
	} {
		t.Run(task.name, func(t *testing.T) {
			tab := browser(t)
			do(t, tab, screens()[1].look("light"), chromedp.Navigate(page(task.path)), task.actions, visible(task.verdict))
		})
	}
}
