package dash_test

import (
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestJudgePage puts a lock on trial in a browser.
func TestJudgePage(t *testing.T) {
	t.Parallel()
	lock, err := filepath.Abs("../adapters/examples/lock.py")
	if err != nil {
		t.Fatal(err)
	}
	page, tab := ownPage(t), browser(t)
	choose := func(command, hazard string) chromedp.Action {
		return chromedp.Tasks{
			setValue(`form.plan [name=command]`, command),
			setValue(`form.plan [name=hazard]`, hazard),
		}
	}
	do(t, tab,
		chromedp.Navigate(page("/dash/judge")), choose("echo hello; cat", ""), press(`form.plan .go`),
		reads(`#part-verdicts`, `line 1 of the program: "hello"`),
		choose("python3 "+lock, "crash"), press(`form.plan .go`),
		reads(`#part-verdicts .judged .safe`, "✓"), // the contract, while it runs
		reads(`#part-verdicts`, "B acquired the lock"),
		reads(`#part-verdicts .status`, "Timelines of all runs"), visible(`#part-verdicts [data-verdict]`),
		press(`#part-verdicts .status a`), reads(`h1`, "Fault matrix"), chromedp.WaitReady(`svg`, chromedp.ByQuery),
	)
}
