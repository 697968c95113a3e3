package report_test

import (
	"strings"
	"testing"

	"oversell/api"
	"oversell/lab/scenario"
	"oversell/view/report"
	"oversell/view/terminal"
)

func TestGuards(t *testing.T) {
	t.Parallel()
	run := func(guard string, safe bool, figures map[string]float64, broken ...api.Text) scenario.Result {
		return scenario.Result{Guard: guard, Safe: safe, Figures: figures, Broken: broken}
	}
	var text strings.Builder
	results := []scenario.Result{
		run("none", false, map[string]float64{"won": 1003, "took_s": 2.25}, api.Text{EN: "1003 won"}),
		run("redis", true, map[string]float64{"won": 1000, "took_s": 9, "factor": 6.46}),
		run("none", false, map[string]float64{"won": 1001, "took_s": 4}, api.Text{EN: "1001 won"}),
		run("none", false, map[string]float64{"won": 1000, "took_s": 3.14}),
	}
	report.Guards(&text, results, terminal.Screen{})
	const want = `
┌───────┬────────┬──────┬───────┬────────┬────────┬──────┐
│ guard │ claims │ runs │ broke │ factor │ took_s │  won │
├───────┼────────┼──────┼───────┼────────┼────────┼──────┤
│ none  │ breaks │    3 │     2 │        │    3.1 │ 1001 │
│ redis │ safe   │    1 │     0 │    6.5 │      9 │ 1000 │
└───────┴────────┴──────┴───────┴────────┴────────┴──────┘
`
	if got := "\n" + text.String(); got != want {
		t.Errorf("got:%s\nwant:%s", got, want)
	}
	text.Reset()
	report.Guards(&text, results, terminal.Screen{Width: 40})
	if strings.Contains(text.String(), "won") || !strings.Contains(text.String(), "guard  claims  runs  broke  factor") {
		t.Errorf("got:\n%s", text.String())
	}
}
