package experiment

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"oversell/lab/history"
)

func cells(claim Claim, verdicts ...Verdict) (cells []Cell) {
	for i, v := range verdicts {
		cells = append(cells, Cell{Hazard: "pause", Strategy: "redis", Seed: int64(i + 1), Claim: claim, Verdict: v, Why: string(v)})
	}
	return cells
}

func times(v Verdict, n int) []Verdict { return slices.Repeat([]Verdict{v}, n) }

// TestSquares: what is protected must survive every run, what breaks may fail to break
// once in twenty.
func TestSquares(t *testing.T) {
	for _, test := range []struct {
		name    string
		cells   []Cell
		verdict Verdict
		agrees  bool
		unknown int
	}{
		{"protected, and held", cells(Protects, Safe, Safe), Safe, true, 0},
		{"protected, and broke once in twenty", cells(Protects, append(times(Safe, 19), Violated)...), Violated, false, 0},
		{"protected, and stalled", cells(Protects, Safe, Stalled), Stalled, false, 0},
		{"breaks, always", cells(Breaks, Violated, Violated), Violated, true, 0},
		{"breaks, nineteen of twenty", cells(Breaks, append(times(Violated, 19), Safe)...), Violated, true, 0},
		{"breaks, eighteen of twenty", cells(Breaks, append(times(Violated, 18), Safe, Safe)...), Violated, false, 0},
		{"breaks, never seen", cells(Breaks, Safe, Safe), NotShown, false, 0},
		{"breaks by waste", cells(Breaks, Wasteful), Wasteful, true, 0},
		{"protected, one run said nothing", cells(Protects, Safe, Unknown), Unknown, true, 1},
		{"no claim", cells(Silent, Violated, Safe), Violated, true, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := Summarise(test.cells)
			s := m.Rows[0].Squares["pause"]
			if s.Verdict != test.verdict || s.Agrees != test.agrees || s.Unknown != test.unknown || s.Runs != len(test.cells) {
				t.Errorf("%+v", s)
			}
			if s.Why != string(s.Verdict) && s.Verdict != NotShown {
				t.Errorf("%s is explained by %q", s.Verdict, s.Why)
			}
			if (len(m.Contradictions()) > 0) == test.agrees {
				t.Errorf("contradictions: %q", m.Contradictions())
			}
			if claimed := test.cells[0].Claim != Silent; (len(m.Unknowns()) > 0) != (test.unknown > 0 && claimed) {
				t.Errorf("unknowns: %q", m.Unknowns())
			}
		})
	}
}

// TestEvidence: what was kept is there for the next program, but for a line that was cut off.
func TestEvidence(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	kept, err := Keep(dir)
	if err != nil {
		t.Fatal(err)
	}
	first := cells(Protects, Safe, Violated)
	first[0].Recording.Ops = []history.Op{{Strategy: "redis", Qty: 1, Outcome: history.OK}}
	first[1].Recording.Events = []history.Event{{Step: "read"}}
	if err := kept.add(first); err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile(kept.list())
	if err != nil {
		t.Fatal(err)
	}
	cut := append(list, []byte(strings.TrimSpace(string(list)))[:40]...)
	if err := os.WriteFile(kept.list(), cut, 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := Keep(dir)
	if err != nil || len(again.Cells()) != 2 {
		t.Fatalf("%d cells: %v", len(again.Cells()), err)
	}
	if err := again.add(cells(Protects, Safe, Safe, Safe)[2:]); err != nil {
		t.Fatal(err)
	}
	last, err := Keep(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := Subject{Card: Card{ID: "redis"}}
	for seed := int64(1); seed <= 4; seed++ {
		if last.has("pause", s, seed) != (seed <= 3) {
			t.Errorf("seed %d is kept: %v", seed, seed > 3)
		}
	}
	if last.has("crash", s, 1) || last.has("pause", Subject{Card: s.Card, Fenced: true}, 1) {
		t.Error("kept, though it never ran")
	}
	recorded, err := last.Recorded()
	if err != nil || len(recorded[0].Recording.Ops) != 1 || len(recorded[1].Recording.Events) != 1 {
		t.Errorf("the recordings: %+v, %v", recorded, err)
	}
}

// TestMySQLVersions: the version of a hazard is the one that it ran on, not that of the rest.
func TestMySQLVersions(t *testing.T) {
	on := func(mysql string, hazards ...string) (cells []Cell) {
		for _, hazard := range hazards {
			cells = append(cells, Cell{Hazard: hazard, MySQL: mysql})
		}
		return cells
	}
	const mysql, mariadb = "9.7.4-2", "10.11.19-MariaDB"
	for want, cells := range map[string][]Cell{
		"":      on("", "race"),
		mysql:   on(mysql, "race", "race", "crash"),
		mariadb: on(mariadb, "galera"),
		mysql + " (galera, stale-read: " + mariadb + ")": slices.Concat(
			on(mariadb, "galera", "stale-read"), on(mysql, "race", "crash", "pause"), on(mariadb, "galera")),
	} {
		if got := MySQLVersions(cells); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Every hazard has its place in the documents, and the matrix is read back as it was written.
func TestMarkdown(t *testing.T) {
	var titles []string
	for _, p := range parts() {
		titles = append(titles, p.hazards...)
	}
	for _, hazard := range Hazards() {
		if !slices.Contains(titles, hazard) {
			t.Errorf("%s is in none of the tables", hazard)
		}
	}

	pauses, crash := cells(Breaks, times(Violated, 3)...), Cell{Hazard: "crash", Strategy: "redis", Claim: Protects, Verdict: Safe}
	before := Summarise(append(pauses, crash, Cell{Hazard: "made-up", Strategy: "zk", Verdict: Stalled}))
	var file strings.Builder
	about := About{Date: "2026-01-02", Machine: "two cores", Versions: "redis 7"}
	if err := before.WriteJSON(&file, about); err != nil {
		t.Fatal(err)
	}
	m, read, err := ReadMatrix(strings.NewReader(file.String()))
	if err != nil || read != about {
		t.Fatalf("ReadMatrix = %+v, %v, want %+v", read, err, about)
	}
	var text strings.Builder
	if err := m.WriteMarkdown(&text, read); err != nil {
		t.Fatal(err)
	}
	const want = "Seeds: 3. 2026-01-02; two cores; redis 7.\n" +
		"\n### The holder's process fails\n\n| | crash | pause |\n|---|:-:|:-:|\n| `redis` | **safe** | **broken** |\n" +
		"\n### Other hazards\n\n| | made-up |\n|---|:-:|\n| `zk` | stalled |\n"
	if text.String() != want {
		t.Errorf("got\n%s\nwant\n%s", text.String(), want)
	}
}
