package matrix

import (
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"

	"oversell/api"
	"oversell/lab/experiment"
	"oversell/view/terminal"
)

func of(hazard api.Hazard, strategy string, fenced bool, claim api.Claim, verdict api.Verdict, why string) experiment.Result {
	return experiment.Result{Hazard: hazard, Strategy: strategy, Fenced: fenced, Claim: claim, Verdict: verdict, Why: api.Text{EN: why, ZH: why}}
}

func printed(t *testing.T, screen terminal.Screen, lang string, results ...experiment.Result) string {
	t.Helper()
	var out strings.Builder
	Summarise(results).Print(&out, screen, lang)
	return "\n" + out.String()
}

// TestPrintOneHazard checks the line of each verdict, with its sign and the claim of the card.
func TestPrintOneHazard(t *testing.T) {
	results := []experiment.Result{
		of("pause", "redis", false, api.Breaks, api.Broken, "2 sold, 1 taken from stock"),
		of("pause", "redis", true, api.Protects, api.Safe, ""),
		of("pause", "zk", false, api.Protects, api.Stalled, "no request acquired the lock"),
		of("pause", "version", false, api.Silent, api.Wasteful, "many retries"),
		of("pause", "etcd", false, api.Protects, api.Inconclusive, "an answer is missing"),
	}
	const want = `
✗ redis           broken, as its card claims: 2 sold, 1 taken from stock
✓ redis --fenced  safe, as its card claims
✗ zk              stalled, but its card claims otherwise: no request acquired the lock
▲ version         wasteful: many retries
? etcd            inconclusive: an answer is missing
`
	if got := printed(t, terminal.Screen{}, "en", results...); got != want {
		t.Errorf("got%s\nwant%s", got, want)
	}
	if got := printed(t, terminal.Screen{}, "zh", results[0]); got != "\n✗ redis  被破坏，与卡片一致：2 sold, 1 taken from stock\n" {
		t.Error(got)
	}
	if got := printed(t, terminal.Screen{Width: 40, Color: true}, "en", results[0]); got != "\n\x1b[1;31m✗ redis  broken, as its card claims: 2\n         sold, 1 taken from stock\x1b[0m\n" {
		t.Errorf("%q", got)
	}
}

// TestPrintTables checks that several hazards fit the width, and that no verdict is left out.
func TestPrintTables(t *testing.T) {
	var results []experiment.Result
	for _, hazard := range experiment.Hazards() {
		results = append(results, of(hazard, "redis", false, api.Breaks, api.Broken, ""), of(hazard, "redis-multi-servers", true, api.Protects, api.Safe, ""))
	}
	for _, width := range []int{0, 80, 100, 200} {
		got := printed(t, terminal.Screen{Width: width}, "en", results...)
		for line := range strings.Lines(got) {
			if wide := text.StringWidth(strings.TrimRight(line, "\n")); width > 0 && wide > width {
				t.Errorf("a line of %d characters in %d: %s", wide, width, line)
			}
		}
		if broken, safe := strings.Count(got, "✗ broken ="), strings.Count(got, "✓ safe ="); broken != len(results)/2 || safe != len(results)/2 {
			t.Errorf("width %d: %d broken and %d safe, want %d of each:\n%s", width, broken, safe, len(results)/2, got)
		}
		if tables := strings.Count(got, "strategy"); width == 0 && tables != 1 {
			t.Errorf("%d tables in a file", tables)
		}
	}
}
