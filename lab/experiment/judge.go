package experiment

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"oversell/api"
	"oversell/lab/check"
	"oversell/lab/history"
)

// pieces is the stock of each product in the usual procedure.
const pieces = 10

// These are the roles of the requests. drawReplicas chooses the replica of each role.
const (
	holder = iota
	contender
	observer
	successor // after the holder's sale
	roles
)

// participant is one strategy in a run.
type participant struct {
	Subject
	stopped string // the owner of the holder's request
	stops   bool   // the holder is to stop
	events  []history.Event
	nth     int               // of a plan for each n
	command string            // the name of the command that was held back, or whose answer was lost
	all     []history.Op      // in the order of the clients
	ops     [roles]history.Op // the first ones of each role
}

type finding struct {
	verdict   api.Verdict
	invariant string
	why       api.Text
}

// with returns a round of the same experiment for these subjects.
func (r *round) with(subjects ...Subject) *round {
	return &round{Experiment: r.Experiment, bed: r.bed, seed: r.seed, subjects: subjects}
}

// drawReplicas draws by seed and hazard only, so a new experiment does not change other draws.
func (r *round) drawReplicas() {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(r.Hazard))
	random := rand.New(rand.NewPCG(uint64(r.seed), hash.Sum64())) //nolint:gosec // not a secret
	if r.twoNodes {
		// Replicas 1 and 3 write to node A, replica 2 writes to node B.
		r.on = [roles]int{holder: 2 * random.IntN(2), contender: 1, observer: 1}
	} else {
		copy(r.on[:], random.Perm(len(r.bed.Rig.Addresses().Replicas)))
	}
	r.on[successor] = r.on[contender]
	r.subjects = slices.Clone(r.subjects)
	random.Shuffle(len(r.subjects), func(i, j int) { r.subjects[i], r.subjects[j] = r.subjects[j], r.subjects[i] })
}

func isClosed(ended <-chan struct{}) bool {
	select {
	case <-ended:
		return true
	default:
		return false
	}
}

func (r *round) result(ctx context.Context, p *participant) Result {
	result := r.safe(p.Subject, pieces, p.all)
	result.Recording.Events = slices.DeleteFunc(result.Recording.Events, func(e history.Event) bool { return e.At < r.began })
	result.NextGrantMS = nextGrant(result.Recording.Events, p.stopped, r.injectedAt)
	countOn := r.on[contender]
	if r.twoNodes {
		countOn = r.on[holder]
	}
	stock, err := r.count(ctx, countOn, p.Subject, &result)
	if err != nil {
		result.Verdict, result.Why = api.Inconclusive, failure(err)
		return result
	}
	p.events = result.Recording.Events
	found := r.find(p, stock, result.Recording)
	result.Verdict, result.Invariant = found.verdict, found.invariant
	result.Why = api.Joined(result.Counts(), found.why, p.answers())
	r.unlessMissed(&result)
	return result
}

// unlessMissed takes the verdict back if no fault has landed: such a run shows nothing about the hazard.
func (r *round) unlessMissed(result *Result) {
	if r.missed != nil {
		result.Verdict, result.Invariant = api.Inconclusive, ""
		result.Why = api.Textf("The fault did not land: %v.", "故障没有生效：%v。", r.missed)
	}
}

func (r *round) find(p *participant, stock check.Conservation, rec history.Recording) finding {
	if stock.Verdict == api.Broken {
		return finding{api.Broken, Conservation, r.cause(p, rec.Events)}
	}
	if exclusion := check.Exclusion(rec); p.Card.Locker && !p.Fenced && exclusion.Verdict == api.Broken {
		return finding{api.Broken, MutualExclusion, exclusion.Why}
	}
	if fences := check.Fences(rec); fences.Verdict == api.Broken {
		return finding{api.Broken, FenceMonotonicity, fences.Why}
	}
	if p.stops && p.stopped == "" && (p.ops[holder].Outcome != history.OK || p.Card.onTrial()) {
		return *neverStopped()
	}
	if r.judge != nil {
		if found := r.judge(p); found != nil {
			return *found
		}
	}
	if next := p.ops[contender]; p.Card.onTrial() && next.Backend == p.Card.ID && !r.silences { // such as a program that starts slowly
		return finding{api.Inconclusive, "", api.Text{
			EN: "The program of the lock did not answer the contender, so nothing shows that the lock kept it out.",
			ZH: "锁的程序没有回答竞争者，所以看不出是不是锁挡住了它。",
		}}
	}
	return finding{api.Safe, "", api.Text{}}
}

func neverStopped() *finding {
	return &finding{api.Inconclusive, "", api.Text{EN: "The holder never reached its step.", ZH: "持锁者没有到达它的步骤。"}}
}

// stalled is the finding that the lock was not granted in time.
func stalled(why api.Text) *finding { return &finding{api.Stalled, Progress, why} }

// mustSell returns a judge. The judge returns f if the request of one of these roles did not sell.
func mustSell(f *finding, parts ...int) func(*participant) *finding {
	return func(p *participant) *finding {
		for _, part := range parts {
			if p.ops[part].Outcome != history.OK {
				return f
			}
		}
		return nil
	}
}

// mustSellInTime returns a judge as mustSell does, for a contender that waits for grantBound. A grant at the end of its
// wait is a last try: nothing woke it.
func mustSellInTime(f *finding) func(*participant) *finding {
	return func(p *participant) *finding {
		if p.ops[contender].Waited >= grantBound {
			return f
		}
		return mustSell(f, contender)(p)
	}
}

// nextGrant returns the milliseconds from the fault until another owner got the lock, or 0.
func nextGrant(events []history.Event, holder string, since time.Duration) float64 {
	for _, e := range events {
		if e.Step == "granted" && e.Owner != holder && e.At >= since {
			return float64((e.At - since).Microseconds()) / 1000
		}
	}
	return 0
}
