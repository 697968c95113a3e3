package dash_test

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// A class sees none oversell and redis hold: chosen and started by clicks, the gap seen
// as it grows, and the table right.
func TestRunInABrowser(t *testing.T) {
	tab := browser(t)
	var link string
	do(t, tab,
		chromedp.Navigate(url("/")),
		chromedp.Click(`input[value=none]`, chromedp.ByQuery),
		chromedp.Click(`input[value=redis]`, chromedp.ByQuery),
		chromedp.SetValue(`input[name=loops]`, "20", chromedp.ByQuery),
		chromedp.Click(`button.go`, chromedp.ByQuery),
		chromedp.WaitVisible(`#stock .gap`, chromedp.ByQuery),
		reads(`#stock text.alarm`, " lost"),
		reads(`#part-results tbody tr:nth-child(1) th`, "redis"),
		reads(`#part-results tbody tr:nth-child(1)`, "✓"),
		reads(`#part-results tbody tr:nth-child(2) th`, "none"),
		reads(`#part-results tbody tr:nth-child(2)`, "✗"),
		chromedp.Evaluate(`location.href`, &link),
	)
	if link != shop.Addresses().Target+"/" {
		t.Errorf("the token stays in the address: %s", link)
	}
	pictures(t, tab, "run")
}
