package dash_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestPagesWithResults does the main tasks, so that the pages show results, and then checks them on a
// projector and in Chinese.
func TestPagesWithResults(t *testing.T) {
	page, tab := pageOf(t, ownLab(t)), browser(t)
	for _, task := range mainTasks() {
		do(t, tab, chromedp.Navigate(page(task.path)), chromedp.WaitReady(`h1`, chromedp.ByQuery), task.actions)
	}
	t.Run("projector", func(t *testing.T) { onProjector(t, tab, page) })
	t.Run("Chinese", func(t *testing.T) { inChinese(t, page) })
}

// onProjector presses P on each page: then no text is smaller than 22 pixels, and no page is wider
// than the screen. The next page stays large, and a second P makes it small.
func onProjector(t *testing.T, tab window, address func(path string) string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join("..", "results", "pages"), 0o755); err != nil {
		t.Fatal(err)
	}
	script := axe(t)
	do(t, tab, chromedp.Navigate(address("/")), chromedp.WaitVisible(`#projector[aria-pressed=false]`, chromedp.ByQuery), chromedp.KeyEvent("p"))
	for _, path := range []string{
		"/", "/dash/first", "/dash/break", "/dash/step", "/dash/judge", "/dash/learn", "/dash/learn/redis", "/dash/try", "/dash/shop", "/dash/course", "/dash/course/01-overselling",
	} {
		for _, screen := range [][2]int64{{1920, 1080}, {1280, 800}} {
			var small []string
			var sticksOut bool
			var picture []byte
			do(t, tab,
				look(screen[0], "light"), chromedp.EmulateViewport(screen[0], screen[1]),
				chromedp.Navigate(address(path)), chromedp.WaitVisible(`#projector[aria-pressed=true]`, chromedp.ByQuery),
				chromedp.Evaluate(smallTexts, &small),
				chromedp.Evaluate(`document.documentElement.scrollWidth > document.documentElement.clientWidth`, &sticksOut),
				chromedp.CaptureScreenshot(&picture),
			)
			name := fmt.Sprintf("projector%s-%d.png", strings.ReplaceAll(path, "/", "-"), screen[0])
			if err := os.WriteFile(filepath.Join("..", "results", "pages", name), picture, 0o644); err != nil {
				t.Fatal(err)
			}
			if screen[0] == 1280 {
				accessible(t, tab, script, path+" on a projector")
			}
			for _, text := range small {
				t.Errorf("%s at %d: %s", path, screen[0], text)
			}
			if sticksOut {
				t.Errorf("%s at %d: it is wider than the screen", path, screen[0])
			}
		}
	}
	do(t, tab, chromedp.KeyEvent("p"), chromedp.WaitVisible(`#projector[aria-pressed=false]`, chromedp.ByQuery))
}

// smallTexts returns the visible texts of less than 22 pixels.
const smallTexts = `[...document.querySelectorAll('body *')].filter(e =>
	[...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) && e.checkVisibility() && e.getBoundingClientRect().left >= 0 &&
	parseFloat(getComputedStyle(e).fontSize) < 22).map(e => getComputedStyle(e).fontSize + ': ' + e.outerHTML.slice(0, 120))`
