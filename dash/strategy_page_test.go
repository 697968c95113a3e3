package dash_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"oversell/api"
)

// TestStrategyPages checks that the page of each strategy says when to use it, and shows some code.
func TestStrategyPages(t *testing.T) {
	_, body := send(t, http.MethodGet, "/strategies", "", nil)
	var cards []api.Card
	if err := json.Unmarshal([]byte(body), &cards); err != nil || len(cards) == 0 {
		t.Fatalf("%d cards, %v", len(cards), err)
	}
	for _, c := range cards {
		status, body := send(t, http.MethodGet, "/dash/learn/"+c.ID, "", nil)
		if status != http.StatusOK || !strings.Contains(body, `id="when"`) || !strings.Contains(body, `id="main-code"`) {
			t.Errorf("the page of %s (status %d) lacks when to use it, or the lines that matter", c.ID, status)
		}
	}
}

// TestStrategyFirst checks that the page of a strategy begins with what it is, when to use it and
// what breaks it. All three, and the head of the code, are in view without scrolling.
func TestStrategyFirst(t *testing.T) {
	for lang, label := range map[string]string{"en": "When to use it", "zh": "何时使用"} {
		tab := browser(t, lang)
		for _, id := range []string{"redis", "none"} {
			do(t, tab,
				chromedp.Navigate(address("/dash/learn/"+id)),
				reads(`h1 + #summary + #when`, label),
				reads(`.verdict-row`, "race"),
				reads(`h1 ~ section .code.plain`, "func "),
			)
			for _, s := range screens()[:2] {
				do(t, tab, s.look("light"), visible(`#summary`), visible(`#when`), visible(`#flaws`), visible(`.verdict-row`), visible(`#main-code`))
			}
			inView(t, tab, `#when`, "light")
			pictures(t, tab, "strategy-"+id+"-"+lang)
		}
	}
}

// TestDrawer opens a strategy from the matrix with the keys. The drawer shows its picture, and closes with Escape;
// the page behind it stays as it is, and the name has the focus again.
func TestDrawer(t *testing.T) {
	tab := browser(t)
	const name = `.matrix a[href="/dash/learn/redis"]`
	var at, focus string
	do(t, tab,
		chromedp.Navigate(address("/dash/break")), chromedp.WaitReady(`body[data-live]`, chromedp.ByQuery),
		chromedp.Focus(name, chromedp.ByQuery), keys(kb.Enter),
		reads(`.drawer[open] h1`, "redis"), reads(`.drawer #when`, "When to use it"), reads(`.drawer svg.system title`, "The lock is in Redis."),
		visible(`.drawer .drawing`),
		chromedp.Location(&at),
	)
	accessible(t, tab, axe(t), "a drawer")
	pictures(t, tab, "drawer")
	do(t, tab, keys(kb.Escape), chromedp.WaitNotPresent(`.drawer[open]`, chromedp.ByQuery), chromedp.Evaluate(`document.activeElement.getAttribute('href')`, &focus))
	if !strings.HasSuffix(at, "/dash/break") || focus != "/dash/learn/redis" {
		t.Errorf("the drawer is at %s, and gives the focus to %s", at, focus)
	}
}
