package ladder_test

import (
	"strings"
	"testing"

	"oversell/lab/exercise"
	"oversell/view/ladder"
)

// TestOfExercise draws every exercise in both languages: a column for each session and one for the server, each
// statement with its reply, and no picture wider than a page.
func TestOfExercise(t *testing.T) {
	all, err := exercise.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		for _, lang := range []string{"en", "zh"} {
			l := ladder.OfExercise(e, lang)
			if len(l.Columns) < 2 || l.Columns[0].Name != "A" || l.Columns[len(l.Columns)-1].Client || len(l.Rungs) < 5 {
				t.Errorf("%s: columns %+v, %d rungs", e.Name, l.Columns, len(l.Rungs))
			}
			svg := l.Inline(e.Name)
			if !strings.Contains(string(svg), `class="arrow"`) || strings.Contains(string(svg), `width="1`) && strings.Index(string(svg), `width="1`) < 120 {
				t.Errorf("%s, %s: no arrow, or too wide: %.200s", e.Name, lang, svg)
			}
		}
	}
	l := ladder.OfExercise(all[0], "en")
	for _, r := range l.Rungs {
		if strings.HasPrefix(r.Words, "UPDATE") && r.Detail == "Query OK, 1 row affected" && r.Column == 1 && r.To == 2 {
			return
		}
	}
	t.Errorf("the statement of B with its reply is missing: %+v", l.Rungs)
}
