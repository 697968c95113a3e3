package dash_test

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestScenariosInABrowser runs the scenario coupon without a guard, with the keys: the verdict must be broken. It
// then runs coupon with the guard unique: the verdict must be holds.
func TestScenariosInABrowser(t *testing.T) {
	tab := browser(t)
	do(t, tab,
		chromedp.Navigate(address("/dash/course/shop")),
		reads(`#part-results`, "No runs yet"),
		chromedp.WaitReady(`body[data-live]`, chromedp.ByQuery),
		tabTo(`#scenario-coupon input[name=guard]`), keys(" ", kb.ArrowDown, kb.ArrowUp), chromedp.WaitReady(`#scenario-coupon input[value=none]:checked`, chromedp.ByQuery),
		tabTo(`#scenario-coupon .go`), keys(kb.Enter),
		reads(`.outcomes li:nth-child(1)`, "✗ broken"),
		reads(`.outcomes li:nth-child(1)`, "users with more than one: "),
		reads(`#part-now`, "Done."),
		press(`#scenario-coupon input[value=unique]`), press(`#scenario-coupon .go`),
		reads(`.outcomes li:nth-child(1)`, "✓ holds"),
		reads(`.outcomes li:nth-child(1)`, "2000 users wanted 100 coupons"),
		reads(`.outcomes li:nth-child(1)`, "as 20 users pressed several times"),
		reads(`#part-now`, "Done."),
	)
	inView(t, tab, `.outcomes li:nth-child(1) .big-verdict`, "light", "dark")
	accessible(t, tab, axe(t), "results of scenarios")
	pictures(t, tab, "scenarios")
}
