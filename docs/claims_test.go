package docs_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"oversell/api"
	"oversell/lab/experiment"
	"oversell/locks/catalog"
)

// These tests need no server and take seconds. They fail if the catalogue (the list of all
// strategies) lacks a new strategy. They also fail if the recorded experiments do not confirm a
// claim of a card (the description of a strategy).

// TestCatalogued checks that each strategy whose card is in the source files is in the catalogue.
func TestCatalogued(t *testing.T) {
	listed := map[string]bool{}
	for _, c := range catalog.Cards() {
		if listed[c.ID] {
			t.Errorf("two strategies of the catalogue have the id %s", c.ID)
		}
		listed[c.ID] = true
	}
	files, err := filepath.Glob("locks/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "trial/lockstest/") {
			continue
		}
		for _, id := range cardsIn(t, file) {
			found++
			if !listed[id] {
				t.Errorf("%s has the card of %s, which is not in the catalogue: add its line to locks/catalog/catalog.go", file, id)
			}
		}
	}
	if found < len(listed) {
		t.Errorf("%d cards were found in the families' files, and the catalogue lists %d strategies", found, len(listed))
	}
}

// TestNumberOfStrategies holds the number in the READMEs against the catalogue.
func TestNumberOfStrategies(t *testing.T) {
	for file, sentence := range map[string]string{"README.md": "The %d strategies follow", "README.zh-CN.md": "%d 种策略沿着"} {
		if want := fmt.Sprintf(sentence, len(catalog.Cards())); !strings.Contains(read(t, file), want) {
			t.Errorf("%s does not say %q", file, want)
		}
	}
}

// TestWhen checks that each card says in both languages when to use its strategy. The text is short,
// and names only other strategies. A strategy that loses updates in one process is not for use.
func TestWhen(t *testing.T) {
	const longest = 200
	for _, c := range catalog.Cards() {
		if c.When.EN == "" || c.When.ZH == "" {
			t.Errorf("the card of %s does not say in both languages when to use it: %q, %q", c.ID, c.When.EN, c.When.ZH)
		}
		if n := len(c.When.EN); n > longest {
			t.Errorf("the card of %s needs %d characters to say when to use it; at most %d are allowed", c.ID, n, longest)
		}
		if c.Scope == api.ScopeNone && !strings.HasPrefix(c.When.EN, "Not for production: ") {
			t.Errorf("%s loses updates, and its card recommends it: %s", c.ID, c.When.EN)
		}
		for _, named := range strategyName.FindAllStringSubmatch(c.When.EN+c.When.ZH, -1) {
			known := slices.ContainsFunc(catalog.Cards(), func(other api.Card) bool { return other.ID == named[1] })
			if !known || named[1] == c.ID {
				t.Errorf("the card of %s names %q, which is not another strategy", c.ID, named[1])
			}
		}
	}
}

var strategyName = regexp.MustCompile("`([^`]+)`")

// cardsIn returns the ids of the cards in the source text of a file.
func cardsIn(t *testing.T, file string) (ids []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if set, ok := n.(*ast.AssignStmt); ok {
			if id, ok := idSet(set); ok {
				ids = append(ids, id)
			}
		}
		literal, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		if kind, ok := literal.Type.(*ast.SelectorExpr); !ok || kind.Sel.Name != "Card" {
			return true
		}
		for _, element := range literal.Elts {
			pair, ok := element.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			key, _ := pair.Key.(*ast.Ident)
			value, _ := pair.Value.(*ast.BasicLit)
			if key != nil && key.Name == "ID" && value != nil {
				id, err := strconv.Unquote(value.Value)
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, id)
			}
		}
		return true
	})
	return ids
}

// idSet returns the id that an assignment such as card.ID, card.Title = "zk", ... gives to a card.
// Such an assignment changes a copy of another card.
func idSet(set *ast.AssignStmt) (id string, ok bool) {
	for i, left := range set.Lhs {
		field, isField := left.(*ast.SelectorExpr)
		if !isField || field.Sel.Name != "ID" || len(set.Rhs) != len(set.Lhs) {
			continue
		}
		if value, ok := set.Rhs[i].(*ast.BasicLit); ok {
			id, err := strconv.Unquote(value.Value)
			return id, err == nil
		}
	}
	return "", false
}

// TestHazards checks each hazard (kind of failure) about which a card makes a claim. There must be
// an experiment with this hazard, and it must be able to run the strategy of the card.
func TestHazards(t *testing.T) {
	for _, c := range catalog.Cards() {
		for hazard := range claims(c) {
			e, ok := experiment.Of(hazard)
			switch {
			case !ok:
				t.Errorf("the card of %s names the hazard %q, which no experiment injects; the hazards are %s",
					c.ID, hazard, api.JoinHazards(experiment.Hazards(), ", "))
			case !e.AppliesTo(c):
				t.Errorf("the card of %s claims something about %s, and that experiment does not run %s", c.ID, hazard, c.ID)
			}
		}
	}
}

// TestSafe checks that a card says Safe if and only if its list Protects has the hazard
// replica-race. An experiment with this hazard tests the claim.
func TestSafe(t *testing.T) {
	for _, c := range catalog.Cards() {
		if protects := slices.Contains(c.Protects, api.ReplicaRace); c.Safe != protects {
			t.Errorf("the card of %s: Safe is %t, and replica-race among the hazards it protects against is %t", c.ID, c.Safe, protects)
		}
	}
}

// summary is an entry of docs/matrix.json: the results of a strategy under a hazard.
type summary struct {
	Claim        api.Claim   `json:"claim"`
	Runs         int         `json:"runs"`
	Verdict      api.Verdict `json:"verdict"`
	Failed       int         `json:"failed"`
	Inconclusive int         `json:"inconclusive"`
}

// TestProven checks that the runs recorded in docs/matrix.json confirm each claim of each card, and
// each claim that an experiment makes for all cards. If a hazard breaks a strategy, it must spare another one:
// else its experiment may not be able to say so.
func TestProven(t *testing.T) {
	text, err := os.ReadFile("docs/matrix.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded struct {
		Rows []struct {
			Strategy  string                 `json:"strategy"`
			Fenced    bool                   `json:"fenced"`
			Summaries map[api.Hazard]summary `json:"summaries"`
		} `json:"rows"`
	}
	if err := json.Unmarshal(text, &recorded); err != nil {
		t.Fatal(err)
	}
	shown, survived := map[string]map[api.Hazard]summary{}, map[api.Hazard]bool{}
	for _, r := range recorded.Rows {
		for hazard, s := range r.Summaries {
			survived[hazard] = survived[hazard] || s.Verdict == api.Safe
		}
		shown[experiment.Result{Strategy: r.Strategy, Fenced: r.Fenced}.Name()] = r.Summaries
	}
	check := func(c api.Card, fenced bool, hazard api.Hazard, claim api.Claim) {
		s := shown[experiment.Result{Strategy: c.ID, Fenced: fenced}.Name()][hazard]
		if agreement := s.Claim.Agreement(s.Runs, s.Failed, s.Inconclusive); s.Runs == 0 || s.Claim != claim || agreement != api.Agrees {
			t.Errorf("the card of %s has the claim %q about %s, and docs/matrix.json has %d runs with the claim %q, which %q: run make claims strategy=%s",
				c.ID, claim, hazard, s.Runs, s.Claim, agreement, c.ID)
		}
		if claim == api.Breaks && !survived[hazard] {
			t.Errorf("docs/matrix.json has no strategy that survives %s", hazard)
		}
	}
	for _, e := range experiment.All() {
		for _, c := range catalog.Cards() {
			card := c
			if claim := e.Claim(card, false); claim != api.Silent && e.AppliesTo(card) {
				check(card, false, e.Hazard, claim)
			}
			if e.Fenced && c.Fenced && e.AppliesTo(card) {
				check(card, true, e.Hazard, api.Protects)
			}
		}
	}
}

// claims returns the card's claim about each hazard, protects or breaks, as in docs/matrix.json.
func claims(c api.Card) map[api.Hazard]string {
	all := map[api.Hazard]string{}
	for _, h := range c.Protects {
		all[h] = "protects"
	}
	for _, b := range c.Breaks {
		all[b.Hazard] = "breaks"
	}
	return all
}

// TestFalsified checks that make falsify has made each claim to survive a hazard false, with a fence or without: by
// the patch that tools/mutations/claims.tsv names, after which the experiment did harm. The patches must still apply.
func TestFalsified(t *testing.T) {
	claimed := map[string]bool{}
	for _, e := range experiment.All() {
		for _, c := range catalog.Cards() {
			for _, fenced := range []bool{false, true} {
				card := c
				if e.AppliesTo(card) && e.Claim(card, fenced) == api.Protects && (c.Fenced || !fenced) {
					claimed[string(e.Hazard)+"\t"+experiment.Result{Strategy: c.ID, Fenced: fenced}.Name()] = true
				}
			}
		}
	}
	patches := map[string]bool{}
	for line := range strings.Lines(read(t, "tools/mutations/claims.tsv")) {
		field := strings.Split(strings.TrimSpace(line), "\t")
		if len(field) != 4 {
			t.Fatalf("tools/mutations/claims.tsv: %q has %d fields; want hazard, strategy, patch, verdict", line, len(field))
		}
		claim := field[0] + "\t" + field[1]
		if !claimed[claim] {
			t.Errorf("tools/mutations/claims.tsv has %q, which no card claims, or has it twice", claim)
		}
		delete(claimed, claim)
		patches[field[2]] = true
		if !api.Verdict(field[3]).Failed() {
			t.Errorf("with the patch %s, %q is %q: run make falsify", field[2], claim, field[3])
		}
	}
	for claim := range claimed {
		t.Errorf("no patch makes the claim %q false: add its line to tools/mutations/claims.tsv, and run make falsify", claim)
	}
	for name := range patches {
		file := "tools/mutations/claims/" + name + ".patch"
		if out, err := exec.CommandContext(t.Context(), "git", "apply", "--check", file).CombinedOutput(); err != nil {
			t.Errorf("%s does not apply any more: %v\n%s", file, err, out)
		}
	}
	if files, err := filepath.Glob("tools/mutations/claims/*.patch"); err != nil || len(files) != len(patches) {
		t.Errorf("tools/mutations/claims has %d patches, %v; tools/mutations/claims.tsv names %d", len(files), err, len(patches))
	}
}
