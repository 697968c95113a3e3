package dash_test

import (
	"testing"

	"github.com/chromedp/chromedp"

	"oversell/lab/rig/rigtest"
)

// TestPagesWithResults does the main tasks, so that the pages show results, and then checks them on a
// projector and in Chinese.
func TestPagesWithResults(t *testing.T) {
	rigtest.Nightly(t, "TestPages of ./dash")
	page, tab, script := pageOf(t, ownLab(t)), browser(t), axe(t)
	for _, task := range mainTasks() {
		do(t, tab, chromedp.Navigate(page(task.path)), chromedp.WaitReady(`h1`, chromedp.ByQuery), task.actions)
	}
	// A press of P makes all texts large. The next page stays large, and a second P makes it small.
	do(t, tab, chromedp.Navigate(page("/")), chromedp.WaitVisible(`#projector[aria-pressed=false]`, chromedp.ByQuery), chromedp.KeyEvent("p"))
	for _, path := range allPages() {
		do(t, tab, chromedp.Navigate(page(path)), chromedp.WaitVisible(`#projector[aria-pressed=true]`, chromedp.ByQuery))
		if path != "/dash/break/pause/redis" { // its timeline can be enlarged instead
			large(t, tab, path)
		}
		accessible(t, tab, script, path+" on a projector")
	}
	do(t, tab, chromedp.KeyEvent("p"), chromedp.WaitVisible(`#projector[aria-pressed=false]`, chromedp.ByQuery))
	t.Run("Chinese", func(t *testing.T) { inChinese(t, page) })
}
