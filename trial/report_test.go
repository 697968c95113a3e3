package trial_test

import (
	"strings"
	"testing"

	"oversell/api"
	"oversell/trial"
	"oversell/trial/adapter"
	"oversell/trial/lockstest"
	"oversell/view/matrix"
)

// TestMarkdown checks that texts of a program on trial add no line, no column and no markup.
func TestMarkdown(t *testing.T) {
	t.Parallel()
	v := trial.Report{
		Hello:    adapter.Hello{Library: "*x*\n# y", Version: "1"},
		Contract: trial.Contract{{Check: "keys", Claimed: "the claim"}, {Check: "fence", Claimed: "a rise", Failed: "a|b\n`c`"}},
		Matrix: matrix.Matrix{Hazards: []api.Hazard{"pause"}, Rows: []matrix.Row{{
			Fenced: true, Summaries: map[api.Hazard]matrix.Summary{"pause": {Verdict: "broken", Runs: 2, Failed: 1, Why: api.Text{EN: "<b>"}, Command: "x | y"}},
		}}},
	}
	var out strings.Builder
	if err := v.WriteMarkdown(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# \\*x\\* \\# y 1\n",
		"1 of 2 checks of the contract failed.\n\n- contract, `fence`: expected: a rise. Found: a|b \\`c\\`.\n",
		"- ✗ `pause` with the fence: broken in 1 of 2 runs. \\<b> `x | y`\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
}

// TestCheckLine checks the line of an outcome.
func TestCheckLine(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := trial.Printer{Out: &out, Lang: "en"}
	p.Checked(lockstest.CheckResult{Check: "keys", Claimed: "the claim"})
	p.Checked(lockstest.CheckResult{Check: "fence", Claimed: "a rise", Failed: "a fall"})
	want := "✓ keys              the claim\n✗ fence             the lock claims: a rise. The check found: a fall\n"
	if out.String() != want {
		t.Errorf("got:\n%s", out.String())
	}
}
