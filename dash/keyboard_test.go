package dash_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
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
