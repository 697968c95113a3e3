package matrix

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"oversell/api"
	"oversell/lab/experiment"
)

func results(claim api.Claim, verdicts ...api.Verdict) (results []experiment.Result) {
	for i, v := range verdicts {
		results = append(results, experiment.Result{Hazard: "pause", Strategy: "redis", Seed: int64(i + 1), Claim: claim, Verdict: v, Why: api.Text{EN: string(v)}})
	}
	return results
}

func times(v api.Verdict, n int) []api.Verdict {
	return slices.Repeat([]api.Verdict{v}, n)
}

// TestSummaries checks that a claim of protection allows no failed run, and that a claimed flaw may
// fail to show in one run of twenty.
func TestSummaries(t *testing.T) {
	for _, test := range []struct {
		name         string
		results      []experiment.Result
		verdict      api.Verdict
		agrees       bool
		inconclusive int
	}{
		{"protected, and held", results(api.Protects, api.Safe, api.Safe), api.Safe, true, 0},
		{"protected, and broke once in twenty", results(api.Protects, append(times(api.Safe, 19), api.Broken)...), api.Broken, false, 0},
		{"protected, and stalled", results(api.Protects, api.Safe, api.Stalled), api.Stalled, false, 0},
		{"breaks, always", results(api.Breaks, api.Broken, api.Broken), api.Broken, true, 0},
		{"breaks, nineteen of twenty", results(api.Breaks, append(times(api.Broken, 19), api.Safe)...), api.Broken, true, 0},
		{"breaks, eighteen of twenty", results(api.Breaks, append(times(api.Broken, 18), api.Safe, api.Safe)...), api.Broken, false, 0},
		{"breaks, never seen", results(api.Breaks, api.Safe, api.Safe), api.NotShown, false, 0},
		{"breaks by waste", results(api.Breaks, api.Wasteful), api.Wasteful, true, 0},
		{"protected, one run inconclusive", results(api.Protects, api.Safe, api.Inconclusive), api.Inconclusive, true, 1},
		{"breaks, all inconclusive", results(api.Breaks, times(api.Inconclusive, 2)...), api.Inconclusive, true, 2},
		{"breaks, and the inconclusive run may decide", results(api.Breaks, append(times(api.Broken, 10), api.Inconclusive)...), api.Broken, true, 1},
		{"breaks, never seen, one run inconclusive", results(api.Breaks, api.Safe, api.Inconclusive), api.NotShown, false, 1},
		{"no claim", results(api.Silent, api.Broken, api.Safe), api.Broken, true, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := Summarise(test.results)
			s := m.Rows[0].Summaries["pause"]
			if s.Verdict != test.verdict || s.Agrees != test.agrees || s.Inconclusive != test.inconclusive || s.Runs != len(test.results) {
				t.Errorf("%+v", s)
			}
			if s.Why.EN != string(s.Verdict) && s.Verdict != api.NotShown {
				t.Errorf("%s is explained by %q", s.Verdict, s.Why.EN)
			}
			if one := test.results[0]; len(test.results) == test.inconclusive && s.Agreement() != one.Agreement() {
				t.Errorf("%q of all runs, and %q of one", s.Agreement(), one.Agreement())
			}
			if (len(m.Contradictions("en")) > 0) == test.agrees {
				t.Errorf("contradictions: %q", m.Contradictions("en"))
			}
			if claimed := test.results[0].Claim != api.Silent; (len(m.Inconclusive("en")) > 0) != (test.inconclusive > 0 && claimed) {
				t.Errorf("inconclusive: %q", m.Inconclusive("en"))
			}
		})
	}
}

// TestMySQLVersions checks that a hazard is listed with the version on which that hazard ran.
func TestMySQLVersions(t *testing.T) {
	on := func(mysql string, hazards ...api.Hazard) (results []experiment.Result) {
		for _, hazard := range hazards {
			results = append(results, experiment.Result{Hazard: hazard, MySQL: mysql})
		}
		return results
	}
	const mysql, mariadb = "9.7.4-2", "10.11.19-MariaDB"
	for want, results := range map[string][]experiment.Result{
		"":      on("", "race"),
		mysql:   on(mysql, "race", "race", "crash"),
		mariadb: on(mariadb, "galera"),
		mysql + " (galera, stale-read: " + mariadb + ")": slices.Concat(
			on(mariadb, "galera", "stale-read"), on(mysql, "race", "crash", "pause"), on(mariadb, "galera")),
	} {
		if got := MySQLVersions(results); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestMarkdown checks the tables, and that what was written can be read.
func TestMarkdown(t *testing.T) {
	pauses := results(api.Breaks, times(api.Broken, 3)...)
	crash := experiment.Result{Hazard: "crash", Strategy: "redis", Claim: api.Protects, Verdict: api.Safe}
	before := Summarise(append(pauses, crash, experiment.Result{Hazard: "made-up", Strategy: "zk", Verdict: api.Stalled}))
	var file strings.Builder
	about := About{Date: "2026-01-02", Machine: "two cores", Versions: "redis 7"}
	if err := before.WriteJSON(&file, about); err != nil {
		t.Fatal(err)
	}
	var m Recorded
	if err := json.Unmarshal([]byte(file.String()), &m); err != nil || m.About != about {
		t.Fatalf("%+v, %v, want %+v", m.About, err, about)
	}
	var text strings.Builder
	if err := m.WriteMarkdown(&text, m.About); err != nil {
		t.Fatal(err)
	}
	const want = "Seeds: 3. 2026-01-02; two cores; redis 7.\n" +
		"\n### The holder's process fails\n\n|  | crash | pause |\n| --- |:---:|:---:|\n| `redis` | **safe** | **broken** |\n" +
		"\n### Other hazards\n\n|  | made-up |\n| --- |:---:|\n| `zk` | stalled |\n"
	if text.String() != want {
		t.Errorf("got\n%s\nwant\n%s", text.String(), want)
	}
}

// TestRecord checks that newer summaries replace older ones, and that all others stay the same.
func TestRecord(t *testing.T) {
	old := Summarise(append(results(api.Protects, api.Safe, api.Safe),
		experiment.Result{Hazard: "race", Strategy: "redis", Seed: 1, Verdict: api.Safe},
		experiment.Result{Hazard: "race", Strategy: "none", Seed: 1, Verdict: api.Broken}))
	fenced := experiment.Result{Hazard: "crash", Strategy: "redis", Fenced: true, Seed: 1, Verdict: api.Safe}
	old.Record(Summarise(append(results(api.Breaks, api.Broken), fenced)))
	if want := []api.Hazard{"pause", "race", "crash"}; !slices.Equal(old.Hazards, want) {
		t.Errorf("the hazards are %v, want %v", old.Hazards, want)
	}
	if len(old.Rows) != 3 || !old.Rows[2].Fenced {
		t.Fatalf("the rows are %+v", old.Rows)
	}
	redis := old.Rows[0].Summaries
	if s := redis["pause"]; s.Claim != api.Breaks || s.Runs != 1 || s.Failed != 1 || !s.Agrees {
		t.Errorf("what ran again: %+v", s)
	}
	if redis["race"].Runs != 1 || old.Rows[1].Summaries["race"].Failed != 1 {
		t.Errorf("what did not run again: %+v, %+v", redis["race"], old.Rows[1])
	}
}

// TestVerdictsInWords checks that every verdict has a word and a sentence in both languages.
func TestVerdictsInWords(t *testing.T) {
	for _, v := range []api.Verdict{
		api.Safe, api.Stalled, api.Broken, api.Aborted, api.Wasteful, api.NotShown, api.Inconclusive,
	} {
		for _, claim := range []api.Claim{api.Protects, api.Breaks, api.Silent} {
			word, sentence := v.In("zh"), Sentence(experiment.Result{Hazard: "pause", Strategy: "redis", Verdict: v, Claim: claim})
			if word == string(v) || !strings.Contains(sentence.EN, "redis") || !strings.Contains(sentence.ZH, "redis") {
				t.Errorf("%s, %s: %s %v", v, claim, word, sentence)
			}
		}
	}
}
