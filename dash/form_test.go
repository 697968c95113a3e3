package dash_test

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// TestWrongNumbers presses buttons while a number in a closed fold is missing or too large. The page opens the
// fold, goes to the field, and says what is wrong.
func TestWrongNumbers(t *testing.T) {
	t.Parallel()
	address := ownPage(t)
	for _, c := range []struct{ lang, path, fold, field, value, button, says string }{
		{"en", "/", `#load`, "clients", "", `form.plan .go`, "clients: enter a whole number from 1 to 10000"},
		{"zh", "/", `#load`, "stock", "9999999", `form.plan .go`, "库存：请输入整数，0 到 1000000"},
		{"en", "/dash/course/primitives", `#try-semaphore`, "permits", "", `button[value="read:3"]`, "permits: enter a whole number from 1 to 1000"},
	} {
		tab := browser(t, c.lang)
		var at struct {
			Field string
			Open  bool
		}
		do(
			t, tab,
			chromedp.Navigate(address(c.path)), chromedp.WaitReady(`body[data-live]`, chromedp.ByQuery),
			setValue(`[name=`+c.field+`]`, c.value),
			press(c.button),
			reads(`#notice`, c.says), visible(`#notice`), visible(`[name=`+c.field+`]`),
			chromedp.Evaluate(`({ field: document.activeElement.name, open: document.querySelector('`+c.fold+`').open })`, &at),
		)
		if at.Field != c.field || !at.Open {
			t.Errorf("%s, %s: the focus is at %q, and the fold is open: %v", c.path, c.field, at.Field, at.Open)
		}
	}
}
