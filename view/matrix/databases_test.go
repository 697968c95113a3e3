package matrix

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"oversell/api"
)

// summaries returns a row with a summary of each hazard.
func summaries(strategy string, of map[api.Hazard]Summary) Row {
	return Row{Strategy: strategy, Summaries: of}
}

// TestDatabases compares a database with a matrix, and writes the table of it.
func TestDatabases(t *testing.T) {
	t.Parallel()
	safe := Summary{Verdict: api.Safe, Runs: 20, Agrees: true, Why: api.Text{EN: "2 sold."}, Command: "oversell break x", Seeds: []int64{1}}
	broken := func(failed, runs int) Summary {
		return Summary{Verdict: api.Broken, Failed: failed, Runs: runs, Agrees: failed == runs, Why: api.Text{EN: "2 sold, 1 taken."}}
	}
	hazards := []api.Hazard{"race", "pause", "crash", "restart"}
	recorded := Matrix{Hazards: hazards, Rows: []Row{
		summaries("atomic", map[api.Hazard]Summary{"race": safe, "crash": safe}),
		summaries("none", map[api.Hazard]Summary{"race": broken(20, 20), "pause": broken(10, 20), "crash": safe}),
	}}
	all := Databases{Date: "2026-11-25", Machine: "linux/amd64", Servers: []Database{
		{Version: "9.7.4-2", Matrix: Matrix{Hazards: hazards, Rows: []Row{
			summaries("atomic", map[api.Hazard]Summary{"race": safe, "crash": broken(1, 3)}),
			summaries("none", map[api.Hazard]Summary{"race": broken(3, 3), "pause": safe, "restart": safe}), // restart is not recorded
		}}},
		{Version: "10.11.19-MariaDB-0+deb12u1"},
	}}
	var out bytes.Buffer
	if err := all.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.Count(text, `"why"`) != 1 || !strings.Contains(text, "2 sold, 1 taken.") || strings.Contains(text, "seeds") {
		t.Errorf("only the verdict that contradicts a card needs its reason:\n%s", text)
	}
	all = Databases{}
	if err := json.NewDecoder(&out).Decode(&all); err != nil {
		t.Fatal(err)
	}
	if err := all.WriteMarkdown(&out, recorded); err != nil {
		t.Fatal(err)
	}
	const want = `Seeds: 20. 2026-11-25; linux/amd64.

|  | MySQL 9.7 | MariaDB 10.11 |
| --- | ---:| ---:|
| verdicts | 4 | 0 |
| the same as above | 3 | 0 |
| different | 1 | 0 |

- MySQL 9.7: version 9.7.4-2.
  - crash, atomic: broken 1/3 here, safe in the matrix.
- MariaDB 10.11: version 10.11.19-MariaDB-0+deb12u1.
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestClaimedBy checks a recorded verdict against the claim of a changed card.
func TestClaimedBy(t *testing.T) {
	t.Parallel()
	m := Matrix{Hazards: []api.Hazard{"race"}, Rows: []Row{
		summaries("none", map[api.Hazard]Summary{"race": {Verdict: api.Broken, Failed: 3, Runs: 3, Claim: api.Breaks, Agrees: true}}),
	}}
	for claim, contradictions := range map[api.Claim]int{api.Breaks: 0, api.Silent: 0, api.Protects: 1} {
		changed := m.ClaimedBy(func(api.Hazard, string, bool) api.Claim { return claim })
		if lines := changed.Contradictions("en"); len(lines) != contradictions {
			t.Errorf("claim %q: %q, want %d contradictions", claim, lines, contradictions)
		}
	}
}

func TestUneven(t *testing.T) {
	t.Parallel()
	m := Matrix{Hazards: []api.Hazard{"race", "pause"}, Rows: []Row{
		summaries("none", map[api.Hazard]Summary{"race": {Runs: 3}, "pause": {Runs: 2}}),
	}}
	if lines := m.Uneven(); len(lines) != 1 || lines[0] != "none, pause: 2 of 3 runs" {
		t.Errorf("%q", lines)
	}
}
