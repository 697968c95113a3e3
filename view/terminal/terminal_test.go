package terminal

import (
	"slices"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"
)

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		words       string
		first, rest int
		want        []string
	}{
		{"", 10, 10, []string{""}},
		{"fits", 4, 4, []string{"fits"}},
		{"two words", 8, 8, []string{"two", "words"}},
		{"exactly ten, then more", 12, 4, []string{"exactly ten,", "then", "more"}},
		{"a verylongword", 4, 4, []string{"a", "very", "long", "word"}},
		{"库存减少了。三件", 10, 10, []string{"库存减少", "了。三件"}},
		{"卖出 2 件", 6, 6, []string{"卖出 2", "件"}},
		{"  indented line", 10, 10, []string{"  indented", "line"}},
	} {
		if got := Wrap(c.words, c.first, c.rest); !slices.Equal(got, c.want) {
			t.Errorf("%q in %d: %q, want %q", c.words, c.first, got, c.want)
		}
	}
	if got := (Screen{Width: 8}).Wrap("one two three", 2); got != "one two\n  three" {
		t.Errorf("%q", got)
	}
	if got := (Screen{}).Wrap("one two three", 2); got != "one two three" {
		t.Errorf("%q: text in a file must not be wrapped", got)
	}
}

func TestNumber(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 4901: "4,901", 1_000_000: "1,000,000", -4901: "-4,901", -100: "-100"} {
		if got := Number(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestPaint(t *testing.T) {
	if got := (Screen{}).Paint(Bad, "broken"); got != "broken" {
		t.Errorf("%q", got)
	}
	if got := (Screen{Color: true}).Paint(Bad, "broken"); got != "\x1b[1;31mbroken\x1b[0m" {
		t.Errorf("%q", got)
	}
}

func sample() Table {
	return Table{
		Columns: []Column{{Head: "name"}, {Head: "count", Right: true, Drop: 1}, {Head: "p50\nms", Right: true, Drop: 2}, {Head: "text"}},
		Rows: [][]Cell{
			{{Text: "none"}, {Text: "4,901", Sign: Bad}, {Text: "1.5"}, {Text: "no lock at all"}},
			{{Text: "for-update"}, {Text: "0"}, {Text: "12"}, {Text: "locks the row"}},
		},
	}
}

func TestTable(t *testing.T) {
	for width, want := range map[int]string{
		0: `
                   p50
name        count   ms  text
──────────────────────────────────────
none        4,901  1.5  no lock at all
for-update      0   12  locks the row
`,
		36: `
name        count  text
─────────────────────────────────
none        4,901  no lock at all
for-update      0  locks the row
`,
		22: `
name        text
──────────────────────
none        no lock at
            all
for-update  locks the
            row
`,
	} {
		var out strings.Builder
		sample().Write(&out, Screen{Width: width})
		if got := "\n" + out.String(); got != want {
			t.Errorf("width %d: got%s\nwant%s", width, got, want)
		}
	}
}

func TestBarFits(t *testing.T) {
	for width := 1; width < 120; width++ {
		for _, done := range []int{0, 3, 10, 12} {
			if line := barLine("redis-multi-servers (4/8)", done, 10, "3,200 of 5,000", width); text.StringWidth(line) > width {
				t.Errorf("%q does not fit %d", line, width)
			}
		}
	}
	if got, want := barLine("zk", 5, 10, "half", 20), "zk  █████░░░░░  half"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestNoTerminal checks that nothing is drawn into a file or a pipe.
func TestNoTerminal(t *testing.T) {
	t.Setenv("COLUMNS", "100")
	var out strings.Builder
	if screen := Of(&out); screen != (Screen{Width: 100}) {
		t.Errorf("%+v", screen)
	}
	if NewBar(&out) != nil {
		t.Error("a bar in a pipe")
	}
}

func TestColumns(t *testing.T) {
	got := Columns([]string{"  isolation", "Isolation levels"}, []string{"  锁", "a lock  "}, []string{"  none", ""})
	if want := "  isolation  Isolation levels\n  锁         a lock\n  none\n"; got != want {
		t.Errorf("got:\n%q", got)
	}
}
