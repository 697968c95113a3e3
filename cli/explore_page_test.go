package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"oversell/locks/explore"
)

// TestExplorePage checks the page of none: the verdict, the steps in their order, and the numbers in
// the tree.
func TestExplorePage(t *testing.T) {
	for flags, want := range map[string][2]int{"": {2, 4}, "--full": {4, 6}} {
		path := filepath.Join(t.TempDir(), "none.html")
		status, out, message := execute(t, append([]string{"explore", "none", "--html", path}, strings.Fields(flags)...)...)
		if status != 0 {
			t.Fatalf("status %d, %s%s", status, out, message)
		}
		page := readPage(t, path)
		numbers := strconv.Itoa(want[0]) + " of " + strconv.Itoa(want[1])
		inOrder(t, page,
			"none: "+numbers+" schedules lose an update.", "These are all schedules within the bounds.", "explore none", "--html",
			`class="ladder"`, "A: read the stock", "B: read the stock", "A: write the stock", "B: write the stock",
			"A sold, B sold; 9 of 10 are left. An update is lost.", "A,B,A,B", "--replay A,B,A,B",
			`class="tree"`, "All schedules", numbers+" lose an update", "1.</b> A: read the stock on mysql.", "always lost from here", "1.</b> B: read the stock on mysql.")
		_, tree, _ := strings.Cut(page, `class="tree"`)
		checkTree(t, tree, want)
	}
}

func readPage(t *testing.T, path string) string {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

func inOrder(t *testing.T, page string, texts ...string) {
	t.Helper()
	rest := page
	for _, text := range texts {
		_, after, found := strings.Cut(rest, text)
		if !found {
			t.Errorf("the page lacks %q, or it is in the wrong place", text)
			continue
		}
		rest = after
	}
}

// checkTree reads the lists of a page, and checks that the numbers below each line sum up to its own.
func checkTree(t *testing.T, tree string, want [2]int) {
	t.Helper()
	var root [2]int
	stack := []*[2]int{&root} // the sums of the lists that are open
	var said [][2]int         // the numbers of the lines above them
	var last [2]int
	for _, m := range regexp.MustCompile(`<ul[^>]*>|</ul>|>(\d+) of (\d+) loses? an update`).FindAllStringSubmatch(tree, -1) {
		switch {
		case strings.HasPrefix(m[0], "<ul"):
			said, stack = append(said, last), append(stack, &[2]int{})
		case m[0] == "</ul>":
			if len(said) == 0 {
				continue // the end of the tree
			}
			n := len(said) - 1
			// The list of moves without an alternative has no numbers.
			if sum := *stack[n+1]; sum != said[n] && sum != [2]int{} {
				t.Errorf("the moves below a line with %v have %v", said[n], sum)
			}
			said, stack = said[:n], stack[:n+1]
		default:
			last[0], _ = strconv.Atoi(m[1])
			last[1], _ = strconv.Atoi(m[2])
			sum := stack[len(stack)-1]
			sum[0], sum[1] = sum[0]+last[0], sum[1]+last[1]
		}
	}
	if root != want {
		t.Errorf("the root has %v, want %v", root, want)
	}
}

// TestExplorePageWithout checks the pages of a search that finds no lost update, and of one that ends
// early.
func TestExplorePageWithout(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.html")
	if status, out, message := execute(t, "explore", "redis", "--html", path); status != 0 {
		t.Fatalf("status %d, %s%s", status, out, message)
	}
	if page := readPage(t, path); !strings.Contains(page, "No schedule loses an update") || strings.Contains(page, `class="ladder"`) {
		t.Error("the page of redis does not say that no schedule loses an update")
	}
	if status, out, message := execute(t, "explore", "redis-setnx", "--crashes", "1", "--html", "-"); status != 0 ||
		!strings.Contains(out, "! redis-setnx: none of 30 schedules loses an update, but in 6 a client waits in vain for the lock.") {
		t.Errorf("status %d, %.400s\n%s", status, out, message)
	}
	if status, out, message := execute(t, "explore", "redis", "--limit", "1ns", "--html", "-"); status != 0 || !strings.HasPrefix(out, "<!doctype html>") ||
		!strings.Contains(out, "the search was ended before it was complete") || !strings.Contains(out, "No lost update was found") {
		t.Errorf("status %d, %.400s\n%s", status, out, message)
	}
}

// TestExplorePageEscapes checks that the texts of steps are no HTML, and that each kind of fault has
// its place in the picture.
func TestExplorePageEscapes(t *testing.T) {
	strange := `<script>alert("1")</script>`
	steps := []explore.Step{
		{Token: "A", Kind: explore.Deliver, Text: strange, Client: "A", Server: strange},
		{Token: "hold-A", Kind: explore.Hold, Text: "hold", Client: "A", Server: "redis-1"},
		{Token: "time", Kind: explore.Time, Text: "time"},
		{Token: "resume-A", Kind: explore.Resume, Text: "resume", Client: "A"},
		{Token: "failover-1", Kind: explore.Failover, Text: "fail-over", Server: "redis-1"},
		{Token: "expire-A", Kind: explore.Expire, Text: "expiry", Client: "A", Server: "zookeeper"},
		{Token: "crash-B", Kind: explore.Crash, Text: "crash", Client: "B"},
		{Token: "A", Kind: explore.Deliver, Text: "last", Client: "A", Server: "mysql"},
	}
	r := explore.Result{Scope: explore.Scope{Strategy: strange, Bounds: explore.Bounds{Clients: 2}}, Schedules: 1, Harm: explore.LosesUpdate, Oversold: 1, Shortest: steps}
	tree := &explore.Tree{Schedules: 1, Oversold: 1, Children: []*explore.Tree{{Step: steps[0], Schedules: 1, Oversold: 1, Outcome: strange}}}
	var page strings.Builder
	if err := writeExplorePage(&page, r, tree, strange, strange, strange); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(page.String(), "<script") || strings.Count(page.String(), "&lt;script") < 7 {
		t.Error("a strange text is not escaped everywhere")
	}
	l := ladderOf(steps, 2, strange)
	var names, rungs, bands []string
	for _, c := range l.Columns {
		names = append(names, c.Name)
	}
	for _, r := range l.Rungs {
		rungs = append(rungs, fmt.Sprintf("%s%d%d", r.Kind, r.From, r.To))
	}
	for _, b := range l.Bands {
		bands = append(bands, fmt.Sprintf("%d%s%d-%d", b.Column, b.Shape, b.From, b.To))
	}
	if got := strings.Join(names, " "); got != "A B "+strange+" redis-1 zookeeper mysql" {
		t.Errorf("the columns are %s", got)
	}
	if got := strings.Join(rungs, " "); got != "02 fault03 gap00 00 fault33 fault04 fault11 05" {
		t.Errorf("the rungs are %s", got)
	}
	if got := strings.Join(bands, " "); got != "0frozen1-3 1failed6-8" {
		t.Errorf("the bands are %s", got)
	}
}

// TestExplorePageIsBounded checks that a large tree makes no large page, and that the page says how
// much it leaves out.
func TestExplorePageIsBounded(t *testing.T) {
	var grow func(depth int) *explore.Tree
	grow = func(depth int) *explore.Tree {
		n := &explore.Tree{Step: explore.Step{Token: "A", Kind: explore.Deliver, Text: strings.Repeat("a long command ", 10), Client: "A"}, Schedules: 1}
		if depth > 0 {
			n.Schedules = 0
			for range 8 {
				c := grow(depth - 1)
				n.Children, n.Schedules = append(n.Children, c), n.Schedules+c.Schedules
			}
		}
		return n
	}
	var page strings.Builder
	if err := writeExplorePage(&page, explore.Result{Scope: explore.Scope{Bounds: explore.Bounds{Clients: 1}}}, grow(4), "", "", ""); err != nil {
		t.Fatal(err)
	}
	lines := strings.Count(page.String(), `class="says"`)
	if lines != shownMoves+1 || page.Len() > 3e6 || !strings.Contains(page.String(), "8 more: 0 of 8 lose an update") || !strings.Contains(page.String(), "The page shows 3,000 moves") {
		t.Errorf("the page has %d lines and %d bytes", lines, page.Len())
	}
}
