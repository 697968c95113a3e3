package experiment

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"oversell/api"
	"oversell/lab/chaos"
	"oversell/lab/history"
	"oversell/lab/player"
	"oversell/lab/rig/rigtest"
)

// TestKnownPlans carries out plans whose effect is known.
func TestKnownPlans(t *testing.T) {
	const latePause = "A sells at writing, A freezes, a lease passes, B sells at read, A thaws, A resumes, B resumes"
	tests := []struct {
		strategy, plan string
		fenced         bool
		verdict        api.Verdict
		invariant      string
		named          api.Hazard
	}{
		{"none", "A sells at read, B sells, A resumes", false, api.Broken, Conservation, "race"},
		{"redis", latePause, false, api.Broken, Conservation, "pause-at-read"},
		{"redis", latePause, true, api.Safe, "", ""},
		{"redis", "A sells at writing, redis fails over, B sells at read, A resumes, B resumes", false, api.Broken, Conservation, "failover"},
		{"redis", "A sells at read, A starves, B sells, A resumes", false, api.Safe, "", ""},
		{"db-row", "B sells, B disconnects, server 1 restarts", false, api.Safe, "", ""},                      // the next request of B may fail once
		{"redis-setnx", "A sells at granted, A dies", false, api.Stalled, Progress, "crash"},                  // waits for player.GrantBound
		{"redis", "A sells at read, A is cut off, A dies, B sells", false, api.Safe, "", ""},                  // A starts again when it is connected
		{"redis", "A sells at granted, B sells, C resumes, A reconnects, A resumes", false, api.Safe, "", ""}, // two moves are impossible
	}
	bed := open(t)
	for _, tt := range tests {
		t.Run(tt.strategy+" "+tt.plan, func(t *testing.T) {
			if tt.verdict == api.Stalled {
				rigtest.Nightly(t, "TestEveryHazard of ./lab/experiment")
			}
			d := carriedOut(t, bed, subject(t, bed, tt.strategy, tt.fenced), tt.plan)
			if d.Verdict != tt.verdict || d.Invariant != tt.invariant || d.Named != tt.named {
				t.Errorf("%s, %q, named %q; %s", d.Verdict, d.Invariant, d.Named, d.Why.EN)
			}
			if n := d.Coverage[chaos.Freezes]; tt.plan == latePause && (n.Landed != 1 || n.In[chaos.Write] != 1) {
				t.Errorf("the freeze: %+v", n)
			}
		})
	}
}

// TestPrimitivesInPlans locks and unlocks by hand. A semaphore that claims one permit grants too many, and a latch
// that claims a count of three opens after two.
func TestPrimitivesInPlans(t *testing.T) {
	bed := open(t)
	one := player.PrimitiveSubject("semaphore:redis")
	one.Primitive.Permits = 1
	three := player.PrimitiveSubject("latch:redis")
	three.Primitive.Latch = 3
	for _, tt := range []struct {
		subject player.Subject
		plan    string
		verdict api.Verdict
	}{
		{player.PrimitiveSubject("semaphore:redis"), "A locks many, B locks try many, B locks leased, A unlocks, A unlocks, B unlocks", api.Safe},
		{player.PrimitiveSubject("semaphore:redis"), "A locks leased, B locks, C locks, a lease passes, A unlocks", api.Safe},
		{player.PrimitiveSubject("semaphore:zk"), "A locks many, B locks many, A unlocks, C locks", api.Safe},
		{player.PrimitiveSubject("read-write:redis"), "A locks, B locks, C locks many, A dies, B unlocks, A starts", api.Safe},
		{player.PrimitiveSubject("read-write:zk"), "A locks many, B locks, A freezes, a lease passes, A thaws, A unlocks", api.Safe},
		{one, "A locks, B locks, A unlocks", api.Broken},
		{player.PrimitiveSubject("latch:redis"), "A awaits, B awaits, C counts, C counts, A awaits, B counts", api.Safe},
		{player.PrimitiveSubject("latch:redis"), "A awaits, A freezes, B counts, B counts, server 1 restarts, A thaws", api.Safe},
		{three, "A awaits, B counts, B counts", api.Broken},
		{player.PrimitiveSubject("read-write:zk"), "A locks many, D locks try, A unlocks, D locks", api.Safe},
		{player.PrimitiveSubject("read-write:zk"), "B locks, C locks many, B disconnects", api.Safe},
		{player.PrimitiveSubject("read-write:redis"), "D locks many leased, A locks many", api.Safe}, // A waits for the end of the lease
		{player.PrimitiveSubject("semaphore:redis"), "B locks many leased, A locks many leased", api.Safe},
	} {
		d := carriedOut(t, bed, tt.subject, tt.plan)
		for again := 0; again < 5 && d.Plan != tt.plan; again++ { // on a slow machine, a client may still be locking
			d = carriedOut(t, bed, tt.subject, tt.plan)
		}
		if d.Verdict != tt.verdict || d.Plan != tt.plan {
			t.Errorf("%s, %s: %s; %s; carried out: %s", tt.subject.Name(), tt.plan, d.Verdict, d.Why.EN, d.Plan)
		}
	}
}

// TestRandomPlans runs the hazard of the page, which ends at the first plan that fails.
func TestRandomPlans(t *testing.T) {
	bed := open(t)
	results, err := RandomPlans().inItsLab(t.Context(), bed, []player.Subject{subject(t, bed, "none", false)}, 1)
	if err != nil || len(results) != 1 {
		t.Fatal(results, err)
	}
	r := results[0]
	if r.Verdict != api.Broken || !strings.Contains(r.Why.EN, "race, which breaks none, as its card says") || strings.Count(r.Plan, ",") > 3 {
		t.Errorf("%s: %s; %s", r.Verdict, r.Plan, r.Why.EN)
	}
}

// TestBusyMachine does not count a plan, nor a run of a hazard, that contradicts its card while this process got no
// processor.
func TestBusyMachine(t *testing.T) {
	bed := open(t)
	s := subject(t, bed, "none", false)
	s.Card.Safe, s.Card.Breaks, s.Card.Protects = true, nil, []api.Hazard{"race"}
	plan, err := chaos.Parse("A sells at read, B sells, A resumes")
	if err != nil {
		t.Fatal(err)
	}
	for limit, counts := range map[time.Duration]int{0: 0, time.Hour: 1} {
		survey := &Survey{Subject: s, Coverage: chaos.Coverage{}}
		bed.Stalled = limit
		busy := &campaign{Campaign: Campaign{Plan: plan}, watch: unwatched{}}
		if err := busy.once(t.Context(), bed, survey, 1); err != nil {
			t.Fatal(err)
		}
		if survey.Plans != counts || survey.Busy != 1-counts || len(survey.Findings) != counts || survey.Inconclusive() != (counts == 0) {
			t.Errorf("with a limit of %v: %+v", limit, survey)
		}
		onTrial := s // without a claim
		onTrial.Card.Protects, onTrial.Card.Family = nil, "adapter"
		for _, none := range []player.Subject{s, onTrial} {
			results, err := race().inItsLab(t.Context(), bed, []player.Subject{none, subject(t, bed, "redis", false)}, 1)
			verdicts := map[string]api.Verdict{}
			for _, r := range results {
				verdicts[r.Strategy] = r.Verdict
			}
			want := []api.Verdict{api.Inconclusive, api.Broken}[counts]
			if err != nil || len(results) != 2 || verdicts["none"] != want || verdicts["redis"] != api.Safe {
				t.Errorf("with a limit of %v, the race of none, on trial: %t: %v %v, want %s", limit, none.Card.OnTrial(), verdicts, err, want)
			}
		}
	}
}

// TestStopped keeps a finding whose campaign has ended, or whose time is over, before it was repeated and shrunk. Without an
// end, it is shrunk to what contradicts the card.
func TestStopped(t *testing.T) {
	bed := open(t)
	s := subject(t, bed, "none", false)
	s.Card.Safe, s.Card.Breaks = true, nil
	d := carriedOut(t, bed, s, "A sells at read, B sells, A resumes, C sells")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		ctx     context.Context //nolint:containedctx // of this case
		began   time.Time
		stopped bool
		moves   int
	}{{ended, time.Now(), true, 4}, {t.Context(), time.Now().Add(-time.Hour), true, 4}, {t.Context(), time.Now(), false, 2}} {
		survey := &Survey{Subject: s, Plans: 1}
		c := &campaign{Campaign: Campaign{For: time.Minute}, watch: unwatched{}, began: tt.began}
		if err := c.shrink(tt.ctx, bed, survey, d); err != nil {
			t.Fatal(err)
		}
		f := survey.Findings[0]
		if f.Stopped != tt.stopped || (f.Tries == 0) != tt.stopped || len(f.Moves) != tt.moves || !survey.Contradicted() || f.Repeated().ZH == "" {
			t.Errorf("stopped %t after %d tries: %s", f.Stopped, f.Tries, f.Moves)
		}
	}
}

// TestInconclusive also checks that a plan that a card names need not fail again.
func TestInconclusive(t *testing.T) {
	for _, test := range []struct {
		survey Survey
		want   bool
	}{
		{Survey{}, true},
		{Survey{Plans: 1}, false},
		{Survey{Plans: 1, Missing: []chaos.Verb{chaos.Cut}}, true},
		{Survey{Plans: 1, Findings: []Finding{{Drawn: Drawn{Result: Result{Claim: api.Breaks}}}}}, false},
		{Survey{Plans: 1, Findings: []Finding{{Drawn: Drawn{Result: Result{Claim: api.Silent}}}}}, false},
		{Survey{Plans: 1, Findings: []Finding{{Drawn: Drawn{Result: Result{Claim: api.Protects}}}}}, true},
		{Survey{Plans: 1, Findings: []Finding{{Stopped: true, Drawn: Drawn{Result: Result{Claim: api.Protects}}}}}, false},
	} {
		if got := test.survey.Inconclusive(); got != test.want || test.survey.Contradicted() && !test.survey.Findings[0].Stopped {
			t.Errorf("%+v: %t", test.survey, got)
		}
	}
}

// TestAbout says where each kind of finding stands on the card, or in the hello of a lock on trial.
func TestAbout(t *testing.T) {
	for want, r := range map[string]Drawn{
		"This is the hazard pause, which breaks zk, as its card says.":                {Named: "pause", Result: Result{Strategy: "zk", Claim: api.Breaks}},
		"This is the hazard pause. The card of zk does not say that it breaks it.":    {Named: "pause", Result: Result{Strategy: "zk", Claim: api.Protects}},
		"This is the hazard overrun, about which the hello of the lock says nothing.": {Named: "overrun", Result: Result{Strategy: "adapter", Adapter: "./lock", Claim: api.Silent}},
		"The hello of the lock names no such hazard.":                                 {Result: Result{Strategy: "adapter", Adapter: "./lock", Claim: api.Protects}},
	} {
		got := Finding{Drawn: r}.About()
		if got.EN != want || got.ZH == "" || strings.Contains(got.ZH, "%!") {
			t.Errorf("%+v, want %s", got, want)
		}
	}
}

// TestLatestWake measures how long a waiter was not woken. A grant that is recorded before the release says nothing.
func TestLatestWake(t *testing.T) {
	at := func(owner string, step api.Step, s time.Duration) history.Event {
		return history.Event{Owner: owner, Step: step, At: s * time.Second}
	}
	first := []history.Event{at("A", api.Asked, 0), at("A", api.Granted, 0), at("A", api.Released, 1), at("B", api.Asked, 1), at("B", api.Granted, 1), at("C", api.Asked, 2)}
	for want, last := range map[time.Duration][]history.Event{
		3 * time.Second: {at("B", api.Released, 6), at("C", api.Granted, 9)},
		0:               {at("C", api.Granted, 9), at("B", api.Released, 9)},
	} {
		if got := (&played{Played: &player.Played{Recording: history.Recording{Events: slices.Concat(first, last)}}}).latestWake(); got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// TestWithoutFinding says what plans have shown that found nothing.
func TestWithoutFinding(t *testing.T) {
	s := Survey{Plans: 30}
	if r := s.worst(1); r.Verdict != api.Safe || r.Why.EN != "None of 30 plans failed." || r.Command() != "oversell chaos " {
		t.Errorf("%s: %s", r.Verdict, r.Why.EN)
	}
	s.Missing = []chaos.Verb{chaos.Cut, chaos.Dies}
	if r := s.worst(1); r.Verdict != api.Inconclusive || !strings.Contains(r.Why.EN, "cut, dies") {
		t.Errorf("%s: %s", r.Verdict, r.Why.EN)
	}
	s.Findings = []Finding{{First: chaos.Plan{{}}, Drawn: Drawn{Result: Result{Verdict: api.Broken, Plan: "A sells"}}}}
	if r := s.worst(1); r.Verdict != api.Inconclusive || !strings.Contains(r.Why.EN, "not fail again") {
		t.Errorf("%s: %s", r.Verdict, r.Why.EN)
	}
	again := Finding{Drawn: Drawn{Result: Result{Verdict: api.Broken, Plan: "B sells", Claim: api.Protects}}, Tries: 1}
	s.Findings = append(s.Findings, again) // the first one says nothing about it
	if r := s.worst(1); r.Verdict != api.Broken || r.Plan != again.Plan {
		t.Errorf("%s: %s", r.Verdict, r.Plan)
	}
	s.Findings = []Finding{again, s.Findings[0]}
	if r := s.worst(1); r.Verdict != api.Broken || r.Plan != again.Plan {
		t.Errorf("%s: %s", r.Verdict, r.Plan)
	}
}

// TestKnownHazard names hazards by the places at which a plan stops.
func TestKnownHazard(t *testing.T) {
	lock := api.Card{Locker: true, Lease: true, Safe: true, Scope: api.ScopeShared, Backends: []string{"mysql", "redis"}, Breaks: []api.Break{
		{Hazard: api.Pause}, {Hazard: "operator-at-write"}, {Hazard: api.ClockJump},
	}}
	lost, stuck := Result{Invariant: Conservation}, Result{Invariant: Progress}
	stuck.Recording.Ops = []history.Op{{Outcome: history.Refused, Reason: history.NotAcquired}}
	atLast := Result{Invariant: Progress}
	atLast.Recording.Ops = []history.Op{{Return: idleBound + 1, Outcome: history.Refused, Reason: history.NotAcquired}, {Outcome: history.OK}}
	for _, tt := range []struct {
		plan   string
		found  Result
		hazard api.Hazard
		claim  api.Claim
	}{
		{"A sells at writing, A freezes, a lease passes, B sells", lost, "pause-at-read", api.Breaks},
		{"A sells at read, A freezes, a lease passes, B sells", lost, "overrun", api.Protects}, // it notices the end of its lease
		{"A sells at read, A starves, B sells", lost, "", api.Protects},
		{"A sells at writing, A is cut off, a lease passes, B sells", lost, "pause", api.Breaks},
		{"A sells at read, locks deleted, B sells", lost, "operator-at-write", api.Breaks}, // it learns of this at its next renewal
		{"A sells at granted, A dies", stuck, "crash", api.Protects},                       // the lease must free the lock
		{"A sells at granted, A dies", Result{Invariant: Progress}, "crash", api.Silent},
		{"A sells at granted, A dies", atLast, "crash", api.Protects},                   // the lease freed it, but much too late
		{"server 1 jumps, A sells at granted, A dies", stuck, "clock-jump", api.Breaks}, // the lease ends an hour after the clock is right
	} {
		p, err := chaos.Parse(tt.plan)
		if err != nil {
			t.Fatal(err)
		}
		run := &played{Played: &player.Played{Subject: player.Subject{Card: lock}, Moves: p, Recording: tt.found.Recording, Last: &history.Op{}}}
		if n := len(run.Recording.Ops); n > 0 {
			run.Last = &run.Recording.Ops[n-1]
		}
		if hazard, claim := run.knownHazard(tt.found.Invariant); hazard != tt.hazard || claim != tt.claim {
			t.Errorf("%s: %q, %q", tt.plan, hazard, claim)
		}
		run.Fenced = true
		want := tt.claim                        // a fence does not help a waiter
		if tt.found.Invariant == Conservation { // no hazard explains it
			want = api.Protects
		}
		if _, claim := run.knownHazard(tt.found.Invariant); claim != want {
			t.Errorf("%s, fenced: %q", tt.plan, claim)
		}
	}
}

func subject(t *testing.T, bed *player.Testbed, strategy string, fenced bool) player.Subject {
	t.Helper()
	i := slices.IndexFunc(bed.Cards, func(c api.Card) bool { return c.ID == strategy })
	return player.Subject{Card: bed.Cards[i], Fenced: fenced}
}

func carriedOut(t *testing.T, bed *player.Testbed, s player.Subject, text string) Drawn {
	t.Helper()
	p, err := chaos.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	d, err := drawnRun(t.Context(), bed, s, p, 1)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestUnknownStep checks that a plan with a misspelt step is not carried out as if it had none.
func TestUnknownStep(t *testing.T) {
	bed := open(t)
	all, err := Campaign{Subjects: []player.Subject{subject(t, bed, "redis", false)}, Plan: chaos.Plan{{Do: chaos.Sells, At: "raed"}}}.Conduct(t.Context(), []*player.Testbed{bed}, unwatched{})
	if err == nil || !strings.Contains(err.Error(), "raed") || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
}

// TestCampaign lets plans contradict a card that claims too much, and checks that the finding is short.
func TestCampaign(t *testing.T) {
	rigtest.Nightly(t, "TestShrink of ./lab/chaos")
	bed := open(t)
	s := subject(t, bed, "none", false)
	s.Card.Safe, s.Card.Breaks = true, nil
	all, err := Campaign{Subjects: []player.Subject{s}, For: 5 * time.Minute, Seed: 1}.Conduct(t.Context(), []*player.Testbed{bed}, unwatched{})
	if err != nil {
		t.Fatal(err)
	}
	if !all[0].Contradicted() {
		t.Fatalf("%d plans found nothing", all[0].Plans)
	}
	if f := all[0].Findings[0]; len(f.Moves) > 4 || f.Tries == 0 || f.Invariant == "" || f.Claim != api.Protects {
		t.Errorf("%d tries, %s %q, shrunk to %s", f.Tries, f.Verdict, f.Invariant, f.Moves)
	}
}

// TestFencedInRandomPlans draws plans for every lock with a fence, which it uses: no plan may lose an update, or grant a
// lock that is held.
func TestFencedInRandomPlans(t *testing.T) {
	rigtest.Nightly(t, "TestKnownPlans of ./lab/experiment")
	bed := open(t)
	var fenced []player.Subject
	for _, card := range bed.Cards {
		if card.Fenced {
			fenced = append(fenced, player.Subject{Card: card, Fenced: true})
		}
	}
	all, err := Campaign{Subjects: fenced, For: 20 * time.Minute, Seed: time.Now().UnixNano()}.Conduct(t.Context(), []*player.Testbed{bed}, unwatched{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		for _, f := range s.Findings {
			t.Errorf("%s: %s, %s; failed again at try %d; %s", f.Name(), f.Verdict, f.Why.EN, f.Tries, f.Repeat())
		}
		t.Logf("%s: %d plans, never landed: %v", s.Subject.Name(), s.Plans, s.Missing)
	}
}

// TestFindingsRepeat carries out plans that failed again, at most five times each: almost all fail in the same way.
func TestFindingsRepeat(t *testing.T) {
	rigtest.Nightly(t, "TestKnownPlans of ./lab/experiment")
	const findings, most, enough = 20, 5, 18
	bed, repeated, all := open(t), 0, 0
	strategies := []string{"none", "mutex", "redis-setnx", "redis-lua", "redis-uuid", "redis", "redlock", "zk", "etcd", "db-row"}
	for n := 0; all < findings; n++ {
		s := subject(t, bed, strategies[n%len(strategies)], false)
		plan := chaos.Draw(int64(n), bed.LockOf(s))
		first := carriedOut(t, bed, s, plan.String())
		if !first.Verdict.Failed() {
			continue
		}
		all++
		again := false
		for try := 0; try < most && !again; try++ {
			d := carriedOut(t, bed, s, first.Plan)
			again = d.Verdict == first.Verdict && d.Invariant == first.Invariant
		}
		if again {
			repeated++
		} else {
			t.Logf("%s never failed again: %s; %s", s.Name(), first.Plan, first.Why.EN)
		}
	}
	if t.Logf("%d of %d findings repeat", repeated, all); repeated < enough {
		t.Errorf("fewer than %d", enough)
	}
}
