package chaos_test

import (
	"slices"
	"strings"
	"testing"

	"oversell/api"
	"oversell/lab/chaos"
)

func lock(name string) chaos.Lock {
	return chaos.Lock{Name: name, Begins: chaos.Sells, Steps: []api.Step{api.Granted, api.Read, api.Writing}, Faults: chaos.Faults(), Servers: 5, Locker: true}
}

// TestSameSeedSamePlan also checks that another seed or another lock gives another plan, and that a plan is read as it
// was written.
func TestSameSeedSamePlan(t *testing.T) {
	plans := map[string]bool{}
	for seed := range int64(200) {
		p := chaos.Draw(seed, lock("redis"))
		if again := chaos.Draw(seed, lock("redis")); p.String() != again.String() {
			t.Fatalf("seed %d: %s, then %s", seed, p, again)
		}
		plans[p.String()] = true
		plans[chaos.Draw(seed, lock("zk")).String()] = true
		byHand := lock("semaphore")
		byHand.Steps, byHand.Begins, byHand.Leases = []api.Step{api.Granted}, chaos.Locks, true
		hand := chaos.Draw(seed, byHand)
		if hand.Has(chaos.Sells, chaos.Resumes) {
			t.Errorf("a primitive is sold: %s", hand)
		}
		p = slices.Concat(p, hand)
		read, err := chaos.Parse(p.String())
		if err != nil || read.String() != p.String() {
			t.Errorf("written %s, read %s, %v", p, read, err)
		}
		for _, m := range p {
			for _, words := range []string{m.Words().EN, m.Words().ZH} {
				if words == "" || strings.Contains(words, "%!") {
					t.Errorf("%s: %q", m, words)
				}
			}
		}
	}
	if len(plans) < 390 {
		t.Errorf("%d different plans of 400", len(plans))
	}
}

// TestSwarm checks that the plans differ in their mixes: some have no fault, and each fault has plans of its own.
func TestSwarm(t *testing.T) {
	none, alone := 0, map[chaos.Verb]int{}
	for seed := range int64(1000) {
		var kinds []chaos.Verb
		p := chaos.Draw(seed, lock("redis"))
		for _, v := range chaos.Faults() {
			if p.Has(v) {
				kinds = append(kinds, v)
			}
		}
		switch len(kinds) {
		case 0:
			none++
		case 1:
			alone[kinds[0]]++
		}
		if len(kinds) > 4 { // of requests that overlap: two kinds of delays, a death, and a fault of a server or the end of a lease
			t.Errorf("seed %d has %v", seed, kinds)
		}
	}
	if none < 50 || len(alone) != len(chaos.Faults()) {
		t.Errorf("%d plans without a fault; alone: %v", none, alone)
	}
}

func TestParseRejects(t *testing.T) {
	for _, text := range []string{"", "A", "E sells", "D freezes", "D sells at read", "A flies", "A sells soon", "A heals", "A holds 0", "A sells at"} {
		if p, err := chaos.Parse(text); err == nil {
			t.Errorf("%q was read as %s", text, p)
		}
	}
}

// TestShrink gives the shrinker plans that fail as long as they have four moves in their order.
func TestShrink(t *testing.T) {
	const needed = "A sells at read, A freezes, a lease passes, B sells"
	whole, err := chaos.Parse("C sells at granted, A sells try nested at read, C resumes, B holds 1, A freezes, B delivers, a lease passes, B sells try at read, A thaws, A resumes")
	if err != nil {
		t.Fatal(err)
	}
	runs := 0
	fails := func(p chaos.Plan) bool {
		runs++
		want, _ := chaos.Parse(needed)
		for _, m := range p {
			if len(want) > 0 && m.Do == want[0].Do && m.Client == want[0].Client {
				want = want[1:]
			}
		}
		return len(want) == 0
	}
	if got := chaos.Shrink(whole, fails).String(); got != "A sells at read, A freezes, a lease passes, B sells at read" {
		t.Errorf("shrunk to %s", got)
	}
	if runs > 30 {
		t.Errorf("%d runs", runs)
	}
}

func TestCoverage(t *testing.T) {
	c := chaos.Coverage{}
	c.Add(chaos.Coverage{chaos.Freezes: {Injected: 2, Landed: 1}, chaos.Cut: {Injected: 1}})
	c.Add(chaos.Coverage{chaos.Freezes: {Injected: 1, Landed: 1, Renewal: 1}})
	if got := c[chaos.Freezes]; got.Injected != 3 || got.Landed != 2 || got.Renewal != 1 {
		t.Errorf("%+v", got)
	}
	if got := c.Missing([]chaos.Verb{chaos.Freezes, chaos.Cut, chaos.Dies}); len(got) != 2 || got[0] != chaos.Cut {
		t.Errorf("missing %v", got)
	}
	if chaos.PhaseAfter("after-setnx") != chaos.Wait || chaos.PhaseAfter(api.Writing) != chaos.Write || chaos.PhaseAfter("") != chaos.NoPhase {
		t.Error("a step is in another phase")
	}
}
