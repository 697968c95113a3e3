package dash_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"oversell/lab/measure"
	"oversell/view/report"
)

// TestReport opens the page that `oversell run --html` writes, with eight strategies. It leads with
// a verdict for each, is accessible, and prints on at most two pages.
func TestReport(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "view", "report", "testdata", "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	var few []measure.Result
	if err := json.Unmarshal(text, &few); err != nil {
		t.Fatal(err)
	}
	var results []measure.Result
	for len(results) < 8 {
		results = append(results, few[:2]...)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "report.html"))
	if err != nil {
		t.Fatal(err)
	}
	if err := report.HTML(file, results); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	tab := browser(t)
	var printed []byte
	do(t, tab,
		chromedp.Navigate("file://"+file.Name()),
		reads(`.cards li:nth-child(1)`, "updates lost"), reads(`.cards li:nth-child(2)`, "no update lost"), reads(`.advice`, "was the fastest"),
	)
	inView(t, tab, `.cards li:nth-child(1) .headline`, "light", "dark")
	accessible(t, tab, axe(t), "the report")
	pictures(t, tab, "report")
	do(t, tab, chromedp.ActionFunc(func(ctx context.Context) (err error) {
		printed, _, err = page.PrintToPDF().WithPrintBackground(true).WithPreferCSSPageSize(true).Do(ctx)
		return err
	}))
	if pages := strings.Count(string(printed), "/Type /Page\n"); pages < 1 || pages > 2 {
		t.Errorf("it prints on %d pages", pages)
	}
}
