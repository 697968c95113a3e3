package experiment

import (
	"context"
	"strings"
	"time"

	"oversell/api"
	"oversell/lab/check"
	"oversell/lab/history"
	"oversell/lab/measure"
	"oversell/lab/player"
)

// These are the roles of the requests of a hazard.
const (
	holder    = player.Holder
	contender = player.Contender
	observer  = player.Observer
	successor = player.Successor // after the holder's sale
	roles     = player.Roles
)

// played is what was recorded of one strategy. The judge reads nothing else.
type played struct {
	*player.Played
	stock check.Conservation
}

// finding is a verdict with its reason: the run failed, or it shows nothing about the hazard.
type finding struct {
	verdict   api.Verdict
	invariant string
	why       api.Text
}

// rule judges what was recorded of one strategy. It returns nil if it finds nothing.
type rule func(*played) *finding

// stalled returns the finding that the lock was not granted in time.
func stalled(why api.Text) *finding { return &finding{api.Stalled, Progress, why} }

func inconclusive(en, zh string) *finding {
	return &finding{api.Inconclusive, "", api.Text{EN: en, ZH: zh}}
}

// judge judges what was recorded of a strategy. The first rule that finds something decides.
func (r *round) judge(ctx context.Context, p *played) Result {
	result := r.safe(p.Subject, p.Recording)
	if p.Permits == 0 {
		var err error
		if p.stock, err = r.count(ctx, r.countOn, p.Subject, &result); err != nil {
			result.Verdict, result.Why = api.Inconclusive, failure(err)
			return result
		}
		result.Why = result.Counts()
	}
	for _, find := range r.rules(p) {
		if f := find(p); f != nil {
			result.Verdict, result.Invariant, result.Why = f.verdict, f.invariant, api.Joined(result.Why, f.why)
			break
		}
	}
	if !r.promised {
		result.NextGrantMS = nextGrant(p.Recording.Events, p.Stopped, p.Struck)
		result.Why = api.Joined(result.Why, p.answers())
	}
	return result
}

// rules returns the rules in their order. A hazard breaks locks on purpose, so what counts is the harm to the row, and
// its own rule. A plan that was drawn, or made up by a user, is judged by what the lock promises: a lease that ended
// explains a lost update, but not two holders within one lease.
func (r *round) rules(p *played) []rule {
	switch {
	case p.Permits > 0:
		return []rule{grantedInNoOrder, openedEarly, noneAfterwards}
	case r.promised:
		all := []rule{grantedTwice, r.lostUpdate, toldSoldOut}
		if p.Fenced { // else the row takes no fence
			all = append(all, fenceFell)
		}
		all = append(all, soldInNoOrder, failedByItself, overtook, wokenLate, waitedAtTry, idled, noneAfterwards)
		if r.Hazard == Made { // of many random plans, one need not strike
			all = append(all, notStruck)
		}
		return all
	}
	all := []rule{notStruck, r.lostUpdate, wroteBeside, fenceFell, neverStopped}
	if r.rule != nil {
		all = append(all, r.rule)
	}
	if !r.silences {
		all = append(all, programSilent)
	}
	return all
}

// notStruck makes a result inconclusive if no fault of the plan has landed.
func notStruck(p *played) *finding {
	if p.Missed == nil {
		return nil
	}
	return &finding{api.Inconclusive, "", notLanded(p.Missed)}
}

func notLanded(why error) api.Text {
	return api.Textf("The fault did not land: %v.", "故障没有生效：%v。", why)
}

func (r *round) lostUpdate(p *played) *finding {
	switch {
	case p.stock.Verdict != api.Broken:
		return nil
	case r.promised: // the requests may have other roles
		return &finding{api.Broken, Conservation, api.Text{}}
	}
	return &finding{api.Broken, Conservation, r.cause(p)}
}

// wroteBeside checks, without a fence, whether a holder wrote after another request had the lock.
func wroteBeside(p *played) *finding {
	if got := check.Exclusion(p.Recording); p.Card.Locker && !p.Fenced && got.Verdict == api.Broken {
		return &finding{api.Broken, MutualExclusion, got.Why}
	}
	return nil
}

func fenceFell(p *played) *finding {
	if got := check.Fences(p.Recording); got.Verdict == api.Broken {
		return &finding{api.Broken, FenceMonotonicity, got.Why}
	}
	return nil
}

func neverStopped(p *played) *finding {
	if p.Stops && p.Stopped == "" && (p.Ops[holder].Outcome != history.OK || p.Card.OnTrial()) {
		return inconclusive("The holder never reached its step.", "持锁者没有到达它的步骤。")
	}
	return nil
}

// programSilent makes a result inconclusive if the program of a lock on trial did not answer the contender, for example
// because it starts slowly.
func programSilent(p *played) *finding {
	if next := p.Ops[contender]; p.Card.OnTrial() && next.Backend == p.Card.ID {
		return inconclusive("The program of the lock did not answer the contender, so nothing shows that the lock kept it out.",
			"锁的程序没有回答竞争者，所以看不出是不是锁挡住了它。")
	}
	return nil
}

// mustSell returns a rule, which returns f if the request of one of these roles did not sell.
func mustSell(f *finding, parts ...int) rule {
	return func(p *played) *finding {
		for _, part := range parts {
			if p.Ops[part].Outcome != history.OK {
				return f
			}
		}
		return nil
	}
}

// mustSellInTime returns a rule as mustSell does, for a contender that waits for player.GrantBound. A grant at the end of
// that wait came from a last try of the contender: no release woke it.
func mustSellInTime(f *finding) rule {
	return func(p *played) *finding {
		if p.Ops[contender].Waited >= player.GrantBound {
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
func (r *round) cause(p *played) api.Text {
	const never = time.Duration(1<<63 - 1)
	at := func(ofHolder bool, step api.Step) time.Duration {
		for _, e := range p.Recording.Events {
			if e.Step == step && (e.Owner == p.Stopped) == ofHolder {
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

// answers returns a sentence for each answer to the holder or the contender that is no sale.
func (p *played) answers() (all api.Text) {
	for part, name := range []api.Text{holder: {EN: "The holder", ZH: "持锁者"}, contender: {EN: "The contender", ZH: "竞争者"}} {
		op := p.Ops[part]
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
