package cli_test

import (
	"cmp"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"oversell/api"
	"oversell/docs"
	"oversell/view/matrix"
)

// TestJudgeOurs puts our own locks on trial as adapters, and compares the verdicts with those that
// they got as strategies. OVERSELL_ADAPTED is the number of seeds; make adapted sets it.
func TestJudgeOurs(t *testing.T) {
	seeds := os.Getenv("OVERSELL_ADAPTED")
	if seeds == "" {
		t.Skip("make adapted runs this test: it takes many minutes")
	}
	var recorded matrix.Recorded
	if err := json.Unmarshal(docs.Matrix, &recorded); err != nil {
		t.Fatal(err)
	}
	for _, id := range strings.Fields(cmp.Or(os.Getenv("OVERSELL_LOCKS"), "redis zk db-row redis-uuid")) {
		t.Run(id, func(t *testing.T) {
			got, text, _ := judged(t, "--seeds", seeds, "--", built(), "adapter", id)
			for _, c := range got.Contract {
				if c.Failed != "" {
					t.Errorf("contract, %s: %s", c.Check, c.Failed)
				}
			}
			compared := 0
			for _, row := range got.Rows {
				for hazard, s := range row.Summaries {
					want, ok := summaryOf(recorded.Matrix, id, row.Fenced, hazard)
					if !ok { // only locks on trial get this hazard
						t.Logf("%s, fenced %v: %s; not recorded for the strategy", hazard, row.Fenced, s.Verdict)
						continue
					}
					compared++
					if s.Verdict != want.Verdict || s.Inconclusive > 0 {
						t.Errorf("%s, fenced %v: %s, %d inconclusive; as a strategy %q. %s", hazard, row.Fenced, s.Verdict, s.Inconclusive, want.Verdict, s.Why.EN)
					}
				}
			}
			t.Logf("%s: %d verdicts compared, %s seeds", id, compared, seeds)
			if compared < 10 {
				t.Errorf("only %d verdicts:\n%s", compared, text)
			}
		})
	}
}

func summaryOf(m matrix.Matrix, id string, fenced bool, hazard api.Hazard) (matrix.Summary, bool) {
	for _, row := range m.Rows {
		if row.Strategy == id && row.Fenced == fenced {
			s, ok := row.Summaries[hazard]
			return s, ok
		}
	}
	return matrix.Summary{}, false
}
