package docs_test

import (
	"encoding/json"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"oversell/api"
	"oversell/locks/catalog"
)

var (
	han     = regexp.MustCompile(`\p{Han}`)
	word    = regexp.MustCompile(`[A-Za-z]{2,}`)
	heading = regexp.MustCompile(`(?m)^#+ `)
	// notProse matches what is the same in both languages: blocks, comments, code, links' targets.
	notProse = regexp.MustCompile("(?ms)^ *```.*?^ *```$|<!--.*?-->|`[^`\n]+`|\\]\\([^)]*\\)|^\\[[^\n]*\\]: .*?$")
	// paragraph matches the end of a paragraph, of an item of a list, or of a row of a table.
	paragraph = regexp.MustCompile(`\n\s*\n|\n *(?:[-*|#]|\d+\.)`)
)

// TestCardsInChinese checks that all texts of a card are in Chinese as well.
func TestCardsInChinese(t *testing.T) {
	for _, c := range catalog.Cards() {
		texts := []api.Text{c.Title, c.Summary, c.When}
		if c.Setting.EN != "" {
			texts = append(texts, c.Setting)
		}
		for _, b := range c.Breaks {
			texts = append(texts, b.Why)
		}
		for _, f := range c.Tutorial {
			if name := f.Note.EN == f.Note.ZH; !name { // such as Redisson
				texts = append(texts, f.Note)
			}
		}
		for _, text := range texts {
			if !han.MatchString(text.ZH) || han.MatchString(text.EN) {
				t.Errorf("%s: %q is %q in Chinese", c.ID, text.EN, text.ZH)
			}
		}
	}
}

// TestCausesInChinese checks that each recorded verdict has its cause in Chinese as well.
func TestCausesInChinese(t *testing.T) {
	t.Parallel()
	var recorded struct {
		Rows []struct {
			Strategy  string
			Summaries map[string]struct{ Why api.Text }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "docs/matrix.json")), &recorded); err != nil || len(recorded.Rows) == 0 {
		t.Fatalf("%d rows, %v", len(recorded.Rows), err)
	}
	for _, row := range recorded.Rows {
		for hazard, s := range row.Summaries {
			if !han.MatchString(s.Why.ZH) || han.MatchString(s.Why.EN) {
				t.Errorf("%s, %s: %q is %q in Chinese", row.Strategy, hazard, s.Why.EN, s.Why.ZH)
			}
		}
	}
}

// TestDocumentsInChinese checks that each Chinese document has as many headings as the English one,
// and no paragraph in English.
func TestDocumentsInChinese(t *testing.T) {
	t.Parallel()
	for zh, en := range translated(t) {
		text := read(t, zh)
		for _, found := range untranslated(text) {
			t.Errorf("%s is not translated: %s", zh, found)
		}
		got, want := headings(text), headings(read(t, en))
		if got != want {
			t.Errorf("%s has %d headings, and %s has %d", zh, got, en, want)
		}
	}
}

// translated returns the English document of each Chinese one, and of each lesson of the course.
func translated(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{"README.zh-CN.md": "README.md", "docs/strategies.zh-CN.md": "docs/strategies.md"}
	lessons, err := filepath.Glob("docs/course/*.md")
	if err != nil {
		t.Fatal(err)
	}
	exercises, err := filepath.Glob("docs/exercises/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, en := range append(lessons, exercises...) {
		folder, name := path.Split(en)
		all[folder+"zh/"+name] = en
	}
	return all
}

func headings(text string) int {
	return len(heading.FindAllString(notProse.ReplaceAllString(text, ""), -1))
}

// untranslated returns the paragraphs without a Chinese character. Up to two words may be names.
func untranslated(text string) (all []string) {
	for _, p := range paragraph.Split(notProse.ReplaceAllString(text, ""), -1) {
		if len(word.FindAllString(p, -1)) > 2 && !han.MatchString(p) {
			all = append(all, strings.TrimSpace(p))
		}
	}
	return all
}

// TestUntranslated checks that untranslated finds a paragraph, an item and a cell in English.
func TestUntranslated(t *testing.T) {
	for text, want := range map[string]int{
		"# oversell\n\n先读这里。\n\nThis was not translated.":   1,
		"- 第一项\n- the second item of it\n- 第三项":             1,
		"| 一 | 二 |\n|---|---|\n| not yet | translated |":    1,
		"```sh\nbin/oversell run none redis\n```\n":         0,
		"[Redis](docs/one-two-three.md) `bin/oversell lab`": 0,
	} {
		if got := untranslated(text); len(got) != want {
			t.Errorf("%q: %q, want %d", text, got, want)
		}
	}
}
