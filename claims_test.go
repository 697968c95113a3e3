package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"oversell/api"
	"oversell/lab/experiment"
	"oversell/locks/catalog"
)

// These tests need no server: a new strategy that is not in the catalogue, or that claims
// what no experiment has shown, is reported within seconds.

// TestCatalogued: each card in a file of a family belongs to a strategy in the catalogue.
func TestCatalogued(t *testing.T) {
	listed := map[string]bool{}
	for _, c := range catalog.Cards() {
		if listed[c.ID] {
			t.Errorf("two strategies of the catalogue are called %s", c.ID)
		}
		listed[c.ID] = true
	}
	files, err := filepath.Glob("locks/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "locks/lockstest/") {
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

// cardsIn returns the ids of the cards that a file writes down.
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

// idSet returns the id that an assignment such as card.ID, card.Title = "zk", ... gives to
// a copy of another card.
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

// TestHazards: a card names only hazards that there is an experiment for.
func TestHazards(t *testing.T) {
	known := experiment.Hazards()
	for _, c := range catalog.Cards() {
		for h := range claims(c) {
			if !slices.Contains(known, string(h)) {
				t.Errorf("the card of %s names the hazard %q, which no experiment causes; there are %s", c.ID, h, strings.Join(known, ", "))
			}
		}
	}
}

// TestSafe: a card says Safe if and only if it protects against replica-race, which an experiment
// judges.
func TestSafe(t *testing.T) {
	for _, c := range catalog.Cards() {
		if protects := slices.Contains(c.Protects, api.ReplicaRace); c.Safe != protects {
			t.Errorf("the card of %s: Safe is %t, and replica-race among the hazards it protects against is %t", c.ID, c.Safe, protects)
		}
	}
}

// summary is what docs/matrix.json says about a strategy and a hazard.
type summary struct {
	Claim  string `json:"claim"`
	Runs   int    `json:"runs"`
	Agrees bool   `json:"agrees"`
}

// TestProven: the recorded runs have shown each claim of each card.
func TestProven(t *testing.T) {
	text, err := os.ReadFile("docs/matrix.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded struct {
		Rows []struct {
			Strategy  string             `json:"strategy"`
			Fenced    bool               `json:"fenced"`
			Summaries map[string]summary `json:"summaries"`
		} `json:"rows"`
	}
	if err := json.Unmarshal(text, &recorded); err != nil {
		t.Fatal(err)
	}
	shown := map[string]map[string]summary{}
	for _, r := range recorded.Rows {
		if !r.Fenced {
			shown[r.Strategy] = r.Summaries
		}
	}
	for _, c := range catalog.Cards() {
		for hazard, claim := range claims(c) {
			s := shown[c.ID][string(hazard)]
			if s.Runs == 0 || s.Claim != claim || !s.Agrees {
				t.Errorf("the card of %s says that it %s %s, and docs/matrix.json %s: run make claims strategy=%s",
					c.ID, claim, hazard, s, c.ID)
			}
		}
	}
}

func (s summary) String() string {
	switch {
	case s.Runs == 0:
		return "has no run of it"
	case !s.Agrees:
		return fmt.Sprintf("contradicts it in %d runs", s.Runs)
	default:
		return fmt.Sprintf("recorded the claim %q", s.Claim)
	}
}

// claims are what a card says of each hazard, in the matrix's words.
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
