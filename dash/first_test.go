package dash_test

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"oversell/lab/rig/rigtest"
)

// TestFirstLesson plays the first lesson, at first with the keys: four predictions, each followed by its verdict, which must
// be in view. It logs the time, which must be about a minute at most on a quiet machine.
func TestFirstLesson(t *testing.T) {
	address, tab := pageOf(t, ownLab(t)), browser(t)
	do(t, tab, chromedp.Navigate(address("/")), press(`a[href="/dash/first"]`), reads(`h1`, "One minute"), reads(`.predict`, "1 / 4"), chromedp.WaitReady(`body[data-live]`, chromedp.ByQuery))
	began := time.Now()
	for i, trial := range []struct{ press, headline, because string }{
		{"#predict-broken", "updates lost", "The class was right."},
		{"#predict-broken", "✓ no update lost", "The class predicted something else."},
		{"#predict-holds", "updates lost", "Each replica has a mutex of its own."},
		{"#predict-holds", "✓ no update lost", "The class was right."},
	} {
		action := press(trial.press)
		if i == 0 {
			action = chromedp.Tasks{tabTo(trial.press), keys(kb.Enter)}
		}
		do(t, tab, action, reads(`.huge-verdict .huge`, trial.headline), reads(`.huge-verdict .because`, trial.because))
		if i%3 == 0 || rigtest.IsNightly() {
			inView(t, tab, `.huge-verdict .huge`, "light")
		}
	}
	t.Logf("four trials took %v", time.Since(began))
	do(t, tab, reads(`.so-far li:nth-child(3)`, "✗ mutex, three replicas"))
	accessible(t, tab, axe(t), "the end of the first lesson")
	pictures(t, tab, "first")
	do(t, tab, press(`button[data-post="/dash/first/again"]`), reads(`.predict`, "1 / 4"))
}
