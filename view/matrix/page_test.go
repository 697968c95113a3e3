package matrix_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"oversell/api"
	"oversell/lab/experiment"
	"oversell/lab/history"
	"oversell/view/matrix"
)

// ran returns a result with a recording: one sale by one holder.
func ran(hazard api.Hazard, strategy string, seed int64, claim api.Claim, verdict api.Verdict) experiment.Result {
	const ms = time.Millisecond
	step := func(at time.Duration, what api.Step) history.Event {
		return history.Event{Replica: "replica-1", Strategy: strategy, Step: what, Key: "stock:1", Owner: "o", At: at}
	}
	return experiment.Result{
		Hazard: hazard, Strategy: strategy, Seed: seed, Claim: claim, Verdict: verdict,
		Why: api.Textf("run %d of %s", "%[2]s 的第 %[1]d 次运行", seed, strategy), Sold: 2, Taken: 1,
		Recording: history.Recording{
			Events: []history.Event{step(2*ms, "asked"), step(3*ms, "granted"), step(9*ms, "released")},
			Ops:    []history.Op{{Strategy: strategy, Qty: 1, Call: ms, Return: 10 * ms, Outcome: history.OK, Reason: history.Sold, Replica: "replica-1", Owner: "o"}},
		},
	}
}

func pageOf(t *testing.T, results []experiment.Result, lang string) string {
	t.Helper()
	var out bytes.Buffer
	about := matrix.About{Date: "2026-05-04", Machine: "a laptop", Versions: "redis 7.4", Command: "oversell break --all"}
	if err := matrix.WritePage(&out, matrix.Summarise(results), results, about, lang); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func fencedOnce() experiment.Result {
	r := ran("pause", "redis", 1, api.Protects, api.Safe)
	r.Fenced = true
	return r
}

func matrixResults() []experiment.Result {
	quiet := ran("crash", "none", 1, api.Silent, api.Inconclusive)
	quiet.Recording = history.Recording{}
	return []experiment.Result{
		ran("pause", "redis", 1, api.Breaks, api.Broken), ran("pause", "redis", 2, api.Breaks, api.Broken), ran("pause", "redis", 3, api.Breaks, api.Safe),
		fencedOnce(),
		ran("pause", "zk", 1, api.Protects, api.Safe), ran("pause", "zk", 2, api.Protects, api.Broken),
		ran("crash", "redis", 1, api.Silent, api.Safe), ran("crash", "redis", 2, api.Silent, api.Stalled),
		quiet,
	}
}

func TestPageHasASectionForEveryLink(t *testing.T) {
	html := pageOf(t, matrixResults(), "en")
	ids := map[string]int{}
	for _, m := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(html, -1) {
		if ids[m[1]]++; ids[m[1]] > 1 {
			t.Errorf("the id %s is there twice", m[1])
		}
	}
	links := regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(html, -1)
	if len(links) < 5 {
		t.Fatalf("%d links: this test has seen nothing", len(links))
	}
	for _, m := range links {
		if name, ok := strings.CutPrefix(m[1], "#"); !ok || ids[name] == 0 {
			t.Errorf("a link to %s, which is not on the page", m[1])
		}
	}
	for _, m := range regexp.MustCompile(`aria-labelledby="([^"]*)"|url\(#([^)]*)\)`).FindAllStringSubmatch(html, -1) {
		for name := range strings.FieldsSeq(m[1] + m[2]) {
			if ids[name] == 0 {
				t.Errorf("nothing has the id %s", name)
			}
		}
	}
}

func TestPageShowsOneRunPerResultAndAllContradictions(t *testing.T) {
	html := pageOf(t, matrixResults(), "en")
	for id, want := range map[string]bool{
		"pause.redis.1":        true,  // the first run with this verdict
		"pause.redis.2":        false, // has the same verdict as run 1
		"pause.redis.3":        true,  // contradicts the card
		"pause.redis-fenced.1": true,
		"pause.zk.1":           false, // the summary has the worst verdict
		"pause.zk.2":           true,
		"crash.redis.1":        false, // the same without a claim
		"crash.redis.2":        true,
		"crash.none.1":         true,
	} {
		if got := regexp.MustCompile(`<section id="` + regexp.QuoteMeta(id) + `"`).MatchString(html); got != want {
			t.Errorf("%s is shown: %v, want %v", id, got, want)
		}
	}
	if got, want := strings.Count(html, `class="ladder"`), 5; got != want {
		t.Errorf("%d timelines, want %d", got, want)
	}
}

func TestPageSays(t *testing.T) {
	html := pageOf(t, matrixResults(), "en")
	for _, want := range []string{
		`href="#pause.zk.2" aria-label="zk, pause: broken, but its card claims otherwise, 1 of 2 runs failed"`,
		`aria-label="redis --fenced, pause: safe, as its card claims"`,
		"oversell break pause redis --fenced --seed 1",
		"Lost update: 2 sold, 1 taken from stock.",
		"No step of this run was recorded.",
		"redis 7.4", "a laptop",
		`<td></td>`, // crash was not tried on zk
	} {
		if !strings.Contains(html, want) {
			t.Errorf("no %s", want)
		}
	}
}

// TestPageInChinese checks that only names and commands are in English, and that only runs that contradict a card are
// open: the page would be many screens long.
func TestPageInChinese(t *testing.T) {
	html := pageOf(t, matrixResults(), "zh")
	if got, want := strings.Count(html, "<details class=\"run"), 6; got != want {
		t.Errorf("%d runs, want %d", got, want)
	}
	if got, want := strings.Count(html, " open><summary>")+strings.Count(html, " open>\n<summary>"), 2; got != want {
		t.Errorf("%d runs are open, want the %d that contradict their cards", got, want)
	}
	_, body, _ := strings.Cut(html, "<body>")
	text := regexp.MustCompile(`(?s)<code>.*?</code>|<[^>]*>`).ReplaceAllString(body, "|")
	for _, phrase := range regexp.MustCompile(`[A-Za-z]+ [a-z]+ [a-z]+`).FindAllString(text, -1) {
		t.Errorf("in English: %q", phrase)
	}
	if !strings.Contains(html, `<html lang="zh">`) || !strings.Contains(html, "zk，pause：卡片声明它不会被破坏，但 2 次运行中有 1 次失败。") {
		t.Error("the language or a contradiction is missing")
	}
}

func TestPageLoadsNothingAndEscapesAll(t *testing.T) {
	bad := ran("pause", "redis", 1, api.Silent, api.Broken)
	bad.Why = api.Text{EN: `<script>alert(1)</script>`}
	bad.Recording.Ops[0].Reason = `<img src="http://evil/x">`
	bad.Recording.Spans = []history.Span{{What: `"><iframe>`, Who: "</text>", To: time.Second}}
	html := pageOf(t, []experiment.Result{bad}, "en")
	if m := regexp.MustCompile(`(?i)<(script|img|link|iframe)[ >]|@import|url\([^#]`).FindString(html); m != "" {
		t.Errorf("%s: something from outside got through, or something is loaded from elsewhere", m)
	}
	for _, word := range []string{"ZgotmplZ", "NaN", "%!"} {
		if strings.Contains(html, word) {
			t.Errorf("%s: a value the template refused, or that is no number", word)
		}
	}
}

func TestPageOfNothing(t *testing.T) {
	if html := pageOf(t, nil, "en"); !strings.Contains(html, "0 verdicts") {
		t.Error("no summary of nothing")
	}
}
