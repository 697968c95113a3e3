package experiment

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"oversell/api"
	"oversell/lab/check"
	"oversell/lab/history"
	"oversell/lab/measure"
)

// pieces is the stock of each product of a hazard.
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

// cause says why an update was lost, as far as the steps of holder and contender show it.
func (r *round) cause(p *participant, events []history.Event) api.Text {
	const never = time.Duration(1<<63 - 1)
	at := func(ofHolder bool, step api.Step) time.Duration {
		for _, e := range events {
			if e.Step == step && (e.Owner == p.stopped) == ofHolder {
				return e.At
			}
		}
		return never
	}
	wrote := at(true, api.Written)
	switch {
	case wrote == never:
		return api.Text{}
	case at(true, api.Granted) < never && at(false, api.Granted) < wrote:
		if p.Card.Lease && r.lapse != (api.Text{}) {
			return r.lapse
		}
		return api.Text{
			EN: "The contender acquired the lock although the holder had not released it, and both wrote.", ZH: "持锁者还没有释放锁，竞争者就拿到了锁，两者都写入了。",
		}
	case at(false, api.Read) < wrote && at(true, api.Read) < at(false, api.Written):
		return api.Text{EN: "Both requests read the stock before the other had written it.", ZH: "两个请求都在对方写入之前读取了库存。"}
	}
	return r.stale
}

// answers names the answers of holder and contender that are no sale.
func (p *participant) answers() (all api.Text) {
	for part, name := range []api.Text{holder: {EN: "The holder", ZH: "持锁者"}, contender: {EN: "The contender", ZH: "竞争者"}} {
		op := p.ops[part]
		if op.Outcome == history.OK {
			continue
		}
		did := api.Text{EN: "did not sell", ZH: "没有卖出"}
		if op.Outcome == history.Unknown {
			did = api.Text{EN: "may have sold", ZH: "可能已卖出"}
		}
		answer := Answer(op)
		all = api.Joined(all, api.Text{
			EN: name.EN + " " + did.EN + ": " + strings.TrimSuffix(answer.EN, ".") + ".",
			ZH: name.ZH + did.ZH + "：" + answer.ZH + "。",
		})
	}
	return all
}

// Answer returns the answer to a request in a few words.
func Answer(op history.Op) api.Text {
	words, known := map[string]api.Text{
		history.Sold:          {EN: "sold", ZH: "已售出"},
		history.SoldOut:       {EN: "sold out", ZH: "已售完"},
		history.NotAcquired:   {EN: "lock not acquired", ZH: "没有拿到锁"},
		history.Unavailable:   {EN: "a backend was unavailable", ZH: "后端不可用"},
		history.Unreachable:   {EN: "the connection was refused", ZH: "连不上副本"},
		history.TimedOut:      {EN: "no answer in time", ZH: "没有及时应答"},
		history.Broken:        {EN: "the connection broke before the answer", ZH: "应答之前连接中断"},
		history.Interrupted:   {EN: "stopped before the answer", ZH: "在应答之前被中止"},
		string(api.Lost):      {EN: "lock lost", ZH: "锁已丢失"},
		string(api.Fenced):    {EN: "refused by the fence", ZH: "被栅栏号拒绝"},
		string(api.Conflict):  {EN: "conflict with other transactions", ZH: "与其他事务冲突"},
		string(api.Cancelled): {EN: "cancelled", ZH: "已取消"},
		string(api.Unknown):   {EN: "outcome unknown", ZH: "结果未知"},
	}[op.Reason]
	if !known {
		words = api.Text{EN: strings.ReplaceAll(op.Reason, "_", " "), ZH: op.Reason}
	}
	// Without an answer, the detail has only the addresses of the connection.
	if op.Detail == "" || !op.Answered() {
		return words
	}
	detail := measure.Shorten(strings.ReplaceAll(op.Detail, "\n", "; "))
	return api.Text{EN: detail, ZH: words.ZH + "（" + detail + "）"}
}
