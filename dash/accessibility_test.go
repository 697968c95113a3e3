package dash_test

import (
	"compress/gzip"
	"io"
	"os"
	"testing"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"oversell/lab/rig/rigtest"
)

// axe returns the script of axe-core (Deque Systems, licence MPL-2.0), which checks a page by the
// rules of WCAG.
func axe(t *testing.T) string {
	t.Helper()
	file, err := os.Open("testdata/axe-4.14.1.min.js.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	script, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	return string(script)
}

// accessible fails for each rule that the page of a tab violates: all rules in the light style, and
// those of the colours in the dark style. The nightly tests check all rules in both.
func accessible(t *testing.T, tab window, script, page string) {
	t.Helper()
	do(t, tab, chromedp.Evaluate(script+`;0`, nil))
	const all = `resultTypes: ['violations'], preload: false`
	colours := all + `, runOnly: ['color-contrast', 'link-in-text-block']`
	if rigtest.IsNightly() {
		colours = all
	}
	for _, run := range []struct{ scheme, options string }{{"dark", colours}, {"light", all}} {
		var found []struct {
			ID, Help string
			Nodes    []struct{ HTML, FailureSummary string }
		}
		do(t, tab, look(1280, run.scheme), chromedp.Evaluate(`axe.run({ `+run.options+` }).then(r => r.violations)`, &found, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
		for _, v := range found {
			t.Errorf("%s, %s: %s: %s, %d times, such as %s: %s", page, run.scheme, v.ID, v.Help, len(v.Nodes), v.Nodes[0].HTML, v.Nodes[0].FailureSummary)
		}
	}
}
