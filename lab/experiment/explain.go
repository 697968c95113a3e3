package experiment

import (
	"strings"
	"time"

	"oversell/api"
	"oversell/lab/history"
	"oversell/lab/measure"
)

// cause says why an update was lost, as far as the steps of holder and contender show it.
func (r *round) cause(p *participant, events []history.Event) api.Text {
	const never = time.Duration(1<<63 - 1)
	at := func(ofHolder bool, step api.Step) time.Duration {
		for _, e := range events {
			if e.Step == string(step) && (e.Owner == p.stopped) == ofHolder {
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
