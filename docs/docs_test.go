package docs_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"oversell/lab/exercise"
	"oversell/lab/rig/rigtest"
)

const (
	maxWidth  = 100 // of a line in a table or a block, in columns
	maxReadme = 130 // lines
)

// documents returns the documents, except for the lessons.
func documents(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("docs/*.md: %v, %v", files, err)
	}
	for _, pattern := range []string{"docs/exercises/*.md", "docs/libraries/*.md"} {
		more, err := filepath.Glob(pattern)
		if err != nil || len(more) == 0 {
			t.Fatalf("%s: %v, %v", pattern, more, err)
		}
		files = append(files, more...)
	}
	return append(files, "README.md", "README.zh-CN.md", "CONTRIBUTING.md", "bench/README.md")
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestDocsNameNothingInternal checks that the documents do not name a folder of the machine on
// which they were written.
func TestDocsNameNothingInternal(t *testing.T) {
	t.Parallel()
	checkout, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	internal := regexp.MustCompile(`(?i)\bissue \d|/root/|/home/|/Users/|` + regexp.QuoteMeta(checkout))
	for _, file := range append(documents(t), "CHANGELOG.md", "bench/RESULTS.md", "bench/DURABILITY.md", "bench/WAITERS.md") {
		for _, found := range internal.FindAllString(read(t, file), -1) {
			t.Errorf("%s names %q, which its readers do not have", file, found)
		}
	}
}

// TestReadmesQuoteTheBench checks that the figures of README are those of the last measurement.
func TestReadmesQuoteTheBench(t *testing.T) {
	t.Parallel()
	_, section, found := strings.Cut(read(t, "bench/RESULTS.md"), "## The locks you did not need\n")
	if !found {
		t.Fatal("bench/RESULTS.md has no section The locks you did not need")
	}
	// The cells are: rate (range), p50 (range), p99 (range), failed attempts for each sale (range).
	row := func(strategy string) []string {
		return regexp.MustCompile(`(?m)^\| ` + strategy + ` \| (\d+) \(.*?\) \|.*?\|.*?\| ([\d.]+) `).FindStringSubmatch(section)
	}
	naive, forUpdate := row("version-naive"), row("for-update")
	if naive == nil || forUpdate == nil {
		t.Fatal("bench/RESULTS.md has no row of version-naive or for-update")
	}
	attempts, err := strconv.ParseFloat(naive[2], 64)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"README.md", "README.zh-CN.md"} {
		before, after, _ := strings.Cut(read(t, file), "RESULTS.md#the-locks-you-did-not-need")
		quote := before[strings.LastIndex(before, "\n- "):] + after[:strings.Index(after, "\n- ")]
		want := []string{naive[1], forUpdate[1], strconv.FormatFloat(math.Round(attempts), 'f', 0, 64)}
		if !slices.Equal(regexp.MustCompile(`\b\d+\b`).FindAllString(strings.ReplaceAll(quote, "100 ", ""), -1), want) {
			t.Errorf("%s: want the figures %v in %q", file, want, quote)
		}
	}
}

// TestBenchQuotesItself checks that each ratio of bench/README.md is one that the last measurement has with its
// interval, or one that was wanted.
func TestBenchQuotesItself(t *testing.T) {
	t.Parallel()
	results := read(t, "bench/RESULTS.md")
	_, section, found := strings.Cut(read(t, "bench/README.md"), "## Where a target is missed\n")
	quoted := regexp.MustCompile(`\b\d+\.\d\d\b`).FindAllString(section, -1)
	for _, ratio := range quoted {
		if !strings.Contains(results, " "+ratio+" (") && !strings.Contains(results, "| "+ratio+" |") {
			t.Errorf("bench/README.md has the ratio %s, which bench/RESULTS.md has not with an interval", ratio)
		}
	}
	if !found || len(quoted) == 0 {
		t.Error("bench/README.md quotes no ratio")
	}
}

// TestDocumented checks that the documents mention every flag of a replica, every route and every
// hazard.
func TestDocumented(t *testing.T) {
	t.Parallel()
	help, err := exec.CommandContext(t.Context(), rigtest.Program(t), "serve", "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	service := read(t, "docs/service.md")
	for _, flag := range regexp.MustCompile(`(?m)^ +(--[a-z-]+) `).FindAllStringSubmatch(string(help), -1) {
		if !strings.Contains(service, "`"+flag[1]+"`") {
			t.Errorf("docs/service.md does not describe the flag %s", flag[1])
		}
	}
	faults, _, _ := strings.Cut(read(t, "docs/faults.md"), "<!-- matrix -->")
	var recorded struct{ Hazards []string }
	if err := json.Unmarshal([]byte(read(t, "docs/matrix.json")), &recorded); err != nil || len(recorded.Hazards) == 0 {
		t.Fatalf("docs/matrix.json: hazards %q, %v", recorded.Hazards, err)
	}
	for _, hazard := range recorded.Hazards {
		if !strings.Contains(faults, "`"+hazard+"`") {
			t.Errorf("docs/faults.md does not describe the hazard %s", hazard)
		}
	}
	exercises, err := exercise.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range exercises {
		if !strings.Contains(read(t, "docs/lab.md"), "| `"+e.Name+"` |") {
			t.Errorf("docs/lab.md does not describe the exercise %s", e.Name)
		}
	}
	routes := 0
	files, err := filepath.Glob("handlers/*.go")
	if err != nil {
		t.Fatal(err)
	}
	texts := service + read(t, "docs/scenarios.md") + read(t, "docs/primitives.md")
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, route := range regexp.MustCompile(`(?m)(?:(?:engine|sales)\.[A-Z]+\(|^\t\t)"(/[^":]*)`).FindAllStringSubmatch(read(t, file), -1) {
			routes++
			if !strings.Contains(texts, strings.TrimSuffix(route[1], "/")) {
				t.Errorf("no document describes the route %s of %s", route[1], file)
			}
		}
	}
	if routes < 20 {
		t.Errorf("only %d routes were found", routes)
	}
}

// links returns the targets of a document's links and pictures.
func links(text string) (targets []string) {
	for _, pattern := range []string{`\]\(([^)\s]+)\)`, `(?m)^\[[^\]]+\]: (\S+)$`, `(?:src|srcset)="([^"]+)"`} {
		for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			targets = append(targets, found[1])
		}
	}
	return targets
}

// anchors returns the anchors that GitHub derives from a document's headings.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(withoutBlocks(text), -1) {
		anchor := strings.ReplaceAll(strings.ToLower(heading[1]), " ", "-")
		all[regexp.MustCompile(`[^\p{L}\p{N}_-]`).ReplaceAllString(anchor, "")] = true
	}
	return all
}

func withoutBlocks(text string) string {
	return regexp.MustCompile("(?ms)^ *```.*?^ *```$").ReplaceAllString(text, "")
}

func deadLink(from, text, target string) error {
	u, err := url.Parse(target)
	if err != nil || u.IsAbs() { // tests must not depend on the Internet
		return err
	}
	file := from
	if u.Path != "" {
		file = path.Join(path.Dir(from), u.Path)
		there, err := os.Stat(file)
		if err != nil || there.IsDir() || u.Fragment == "" {
			return err
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		text = string(content)
	}
	if u.Fragment != "" && !anchors(text)[u.Fragment] {
		return fmt.Errorf("%s has no heading for #%s", file, u.Fragment)
	}
	return nil
}

func TestLinks(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, file := range append(documents(t), "CHANGELOG.md", "bench/RESULTS.md", "bench/DURABILITY.md", "bench/WAITERS.md") {
		text := read(t, file)
		for _, target := range links(text) {
			seen++
			if err := deadLink(file, text, target); err != nil {
				t.Errorf("%s: link %s is dead: %v", file, target, err)
			}
		}
	}
	if seen < 50 {
		t.Errorf("only %d links were found", seen)
	}
	const text = "# A heading: with `code`\n```sh\n# no heading\n```\n"
	for target, dead := range map[string]bool{
		"missing.md": true, "README.md": false, "README.md#no-such-heading": true, "README.md#two-commands": false,
		"#a-heading-with-code": false, "#no-heading": true, "https://example.org/missing": false, "docs": false,
	} {
		if err := deadLink("made-up.md", text, target); (err != nil) != dead {
			t.Errorf("deadLink(%s) = %v, want dead = %v", target, err, dead)
		}
	}
}

// width returns the number of columns of a line. A Chinese character takes two columns.
func width(line string) (columns int) {
	for _, r := range line {
		columns++
		if r >= 0x2E80 {
			columns++
		}
	}
	return columns
}

// wide returns the lines in a document's tables and code blocks that are wider than maxWidth.
func wide(text string) (lines []string) {
	block := false
	for _, line := range strings.Split(text, "\n") {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if fence {
			block = !block
		}
		if (block || strings.HasPrefix(line, "|")) && width(line) > maxWidth {
			lines = append(lines, line)
		}
	}
	return lines
}

func TestWidth(t *testing.T) {
	t.Parallel()
	for _, file := range documents(t) {
		for _, line := range wide(read(t, file)) {
			t.Errorf("%s: %d columns, at most %d: %s", file, width(line), maxWidth, line)
		}
	}
	if lines := strings.Count(read(t, "README.md"), "\n"); lines > maxReadme {
		t.Errorf("README.md has %d lines, at most %d: move what is not for every reader to docs/", lines, maxReadme)
	}
	long := strings.Repeat("x", maxWidth+1)
	if found := wide(long + "\n| " + long + "\n```sh\n" + long + "\n```\n" + long); len(found) != 2 {
		t.Errorf("wide found %d lines, want the table's and the block's", len(found))
	}
}

// TestTree checks that the tree in docs/design.md names every folder, and only files that exist.
func TestTree(t *testing.T) {
	t.Parallel()
	name := regexp.MustCompile(`^[a-z]+(\.go|/)$`)
	const file = "docs/design.md"
	_, tree, found := strings.Cut(read(t, file), "```text\nmain.go")
	if !found {
		t.Fatalf("%s has no tree", file)
	}
	tree, _, _ = strings.Cut(tree, "```")
	named, above := []string{}, ""
	for _, line := range strings.Split("main.go"+tree, "\n") {
		inside := strings.HasPrefix(line, "  ")
		for i, word := range strings.Fields(line) {
			if !name.MatchString(word) {
				break
			}
			if !inside && i == 0 {
				above = word
			}
			if inside {
				word = above + word
			}
			named = append(named, strings.TrimSuffix(word, "/"))
			if _, err := os.Stat(word); err != nil {
				t.Errorf("%s: the tree names %s: %v", file, word, err)
			}
		}
	}
	folders, err := filepath.Glob("[a-z]*/")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		// The tree need not name these: Git ignores bin and results, and only make uses tools.
		if f := strings.TrimSuffix(folder, "/"); !slices.Contains(append(named, "bin", "results", "tools"), f) {
			if info, err := os.Stat(f); err == nil && info.IsDir() {
				t.Errorf("%s: the tree does not name %s", file, f)
			}
		}
	}
}

// TestTableHeadings checks that no column of a table in the course lacks a heading, which screen readers speak.
func TestTableHeadings(t *testing.T) {
	t.Parallel()
	heads := regexp.MustCompile(`(?m)^\|(.+)\|\n\|[-:| ]+\|$`)
	seen := 0
	for zh, en := range translated(t) {
		for _, file := range []string{zh, en} {
			if !strings.HasPrefix(file, "docs/course/") {
				continue // the page does not show it
			}
			for _, head := range heads.FindAllStringSubmatch(read(t, file), -1) {
				for cell := range strings.SplitSeq(head[1], "|") {
					if seen++; strings.TrimSpace(cell) == "" {
						t.Errorf("%s: a column has no heading: %s", file, head[1])
					}
				}
			}
		}
	}
	if seen < 50 {
		t.Errorf("only %d headings were found", seen)
	}
}

// TestJMeterProperties checks that the document names each property that a plan reads.
func TestJMeterProperties(t *testing.T) {
	t.Parallel()
	plans, err := filepath.Glob("jmeter/*.jmx")
	if err != nil || len(plans) < 5 {
		t.Fatalf("%d plans: %v", len(plans), err)
	}
	text := read(t, "docs/jmeter.md")
	for _, plan := range plans {
		for _, property := range regexp.MustCompile(`__P\((\w+)`).FindAllStringSubmatch(read(t, plan), -1) {
			if !strings.Contains(text, "`"+property[1]+"`") {
				t.Errorf("jmeter.md does not name %s, which %s reads", property[1], filepath.Base(plan))
			}
		}
	}
}
