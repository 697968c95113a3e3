package catalog_test

import (
	"slices"
	"strings"
	"testing"

	"oversell/api"
	"oversell/locks/catalog"
)

// TestPrimitiveSource checks that each primitive shows, for each backend, the file with its code.
func TestPrimitiveSource(t *testing.T) {
	for _, p := range catalog.PrimitiveCards() {
		files, err := catalog.PrimitiveSource(p)
		if err != nil {
			t.Error(err)
		}
		for _, backend := range p.Backends {
			folder := map[string]string{"redis": "locks/redislock/", "zookeeper": "locks/zklock/"}[backend]
			own := folder + strings.ReplaceAll(p.ID, "-", "_") + ".go"
			if !slices.ContainsFunc(files, func(f api.File) bool { return f.Name == own }) {
				t.Errorf("%s lacks %s", p.ID, own)
			}
		}
		if p.Title.ZH == "" || p.Summary.ZH == "" || p.Source == "" || len(p.Routes) == 0 {
			t.Errorf("incomplete: %+v", p)
		}
	}
}

// TestSource checks that the first file of each strategy contains its card (the description with
// its claims). The last file must be guard.go for each Locker, and for no other strategy. Each Lua
// script must begin with a comment.
func TestSource(t *testing.T) {
	for _, card := range cards() {
		files, err := catalog.Source(card)
		if err != nil {
			t.Error(err)
			continue
		}
		if !strings.Contains(files[0].Text, `"`+card.ID+`"`) {
			t.Errorf("%s does not hold the card of %s", files[0].Name, card.ID)
		}
		if last := files[len(files)-1]; (last.Name == "locks/guard.go") != card.Locker {
			t.Errorf("%s, locker %v: its last file is %s", card.ID, card.Locker, last.Name)
		}
		for _, f := range files[1:] {
			if strings.HasSuffix(f.Name, ".lua") && !strings.HasPrefix(f.Text, "-- ") {
				t.Errorf("%s does not begin with its keys and arguments", f.Name)
			}
		}
	}
}

// TestContract checks which files of package locks a strategy needs, and that no strategy shows how its family connects
// to the servers.
func TestContract(t *testing.T) {
	for _, card := range cards() {
		files, err := catalog.Source(card)
		if err != nil {
			t.Error(err)
		}
		for _, f := range files {
			if strings.Contains(f.Text, "tls.Config") {
				t.Errorf("%s shows %s, which connects to a server", card.ID, f.Name)
			}
		}
		want, ok := map[string][]string{
			"atomic":       nil,
			"for-update":   {"locks/transaction.go"},
			"redis":        {"locks/guard.go", "locks/lock.go", "locks/queue.go", "locks/reentrant.go", "locks/release.go"},
			"cohort-redis": {"locks/cohort.go", "locks/guard.go", "locks/lock.go", "locks/queue.go", "locks/reentrant.go", "locks/release.go"},
		}[card.ID]
		if got := catalog.Contract(card, files); ok && !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", card.ID, got, want)
		}
	}
}
