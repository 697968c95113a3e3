package dash_test

import (
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
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

// TestJudgePageRefusals checks the requests that start nothing.
func TestJudgePageRefusals(t *testing.T) {
	t.Parallel()
	authorized := map[string]string{"X-Lab-Token": token}
	for _, c := range []struct {
		form   url.Values
		header map[string]string
		status int
		want   string
	}{
		{url.Values{"command": {"touch /tmp/never"}}, nil, http.StatusForbidden, "token"},
		{url.Values{}, authorized, http.StatusBadRequest, "one line of the shell"},
		{url.Values{"command": {"true\ntrue"}}, authorized, http.StatusBadRequest, "one line of the shell"},
		{url.Values{"command": {strings.Repeat("x", 2001)}}, authorized, http.StatusBadRequest, "at most 2000"},
		{url.Values{"command": {"true"}, "hazard": {"flood"}}, authorized, http.StatusBadRequest, "flood"},
	} {
		if status, body := send(t, http.MethodPost, "/dash/judge/start", c.form, c.header); status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%v: %d %s, want %d and %s", c.form, status, body, c.status, c.want)
		}
	}
	if status, _ := send(t, http.MethodGet, "/dash/judge/report", nil, nil); status != http.StatusNotFound {
		t.Errorf("a report before a trial: %d", status)
	}
}
