package explore

import (
	"fmt"
	"slices"

	"oversell/api"
)

// fault is a kind of fault that a search adds once, and what a card says about it.
type fault struct {
	name, zh string
	bounds   Bounds
	on       string // the backend that can have it, or empty
	// hazards are those that the fault amounts to: a strategy that one of them breaks is expected to
	// lose an update, or to block, in a schedule with the fault.
	hazards []api.Hazard
}

func faultKinds() []fault {
	return []fault{
		{"no fault", "没有故障", Bounds{}, "", []api.Hazard{api.Race, api.ReplicaRace}},
		{"one pause", "一次暂停", Bounds{Pauses: 1}, "", []api.Hazard{api.Pause}},
		{"one crash", "一次崩溃", Bounds{Crashes: 1}, "", []api.Hazard{api.Crash}},
		{"one lost reply", "丢失一个应答", Bounds{LostReplies: 1}, "", []api.Hazard{api.LostReply}},
		{"one fail-over", "一次故障切换", Bounds{Failovers: 1}, "redis", []api.Hazard{api.Failover, api.BareMajority}},
		// A write on its way when the session ends is that of a holder which is paused at the write.
		{"one expiry of a session", "一次会话过期", Bounds{Expiries: 1}, "zookeeper", []api.Hazard{api.SessionExpiry, api.Pause}},
	}
}

func (f fault) at(backends []string) bool {
	return f.on == "" || slices.ContainsFunc(backends, func(b string) bool {
		return b == f.on || f.on == "redis" && b == "redlock"
	})
}

// Scopes returns the searches that show what a card says: two clients, with each kind of fault once,
// and again with fencing tokens if the strategy has them.
func Scopes(card api.Card) (all []Scope) {
	for _, fenced := range []bool{false, true} {
		if (Scope{Strategy: card.ID, Bounds: Bounds{Fenced: fenced}}).Supported() != nil {
			continue
		}
		for _, f := range faultKinds() {
			if b := f.bounds; f.at(card.Backends) {
				b.Clients, b.Fenced = 2, fenced
				all = append(all, Scope{Strategy: card.ID, Bounds: b})
			}
		}
	}
	return all
}

func (t Scope) fault() (fault, bool) {
	without := t.Bounds
	without.Clients, without.Fenced = 0, false
	i := slices.IndexFunc(faultKinds(), func(f fault) bool { return f.bounds == without })
	if i < 0 {
		return fault{}, false
	}
	return faultKinds()[i], true
}

// Contradiction says in which way the result contradicts the card, or returns an empty text. A
// search that is not complete contradicts a card only by what it has found.
func (r Result) Contradiction(card api.Card) string {
	f, ok := r.fault()
	if !ok {
		return ""
	}
	broken := slices.ContainsFunc(f.hazards, card.BrokenBy) || card.BrokenBy(api.ReplicaRace)
	harm := r.Oversold + r.Stalled
	if r.Bounds.LostReplies > 0 && card.Family == "redis" { // a session ends its locks without a lease
		harm += r.Late
	}
	switch {
	case r.Bounds.Fenced && r.Oversold > 0 && (!broken || r.Bounds.Failovers == 0):
		return fmt.Sprintf("%s, fenced, %s: %d of %d schedules lose an update, although a fencing token excludes it", r.Strategy, f.name, r.Oversold, r.Schedules)
	case r.Bounds.Fenced:
		return ""
	case harm > 0 && !broken:
		return fmt.Sprintf("%s, %s: %d of %d schedules do harm, but the card does not say that %s breaks it", r.Strategy, f.name, harm, r.Schedules, api.JoinHazards(f.hazards, " or "))
	case harm == 0 && broken && r.Complete:
		return fmt.Sprintf("%s, %s: none of %d schedules does harm, but the card says that %s breaks it", r.Strategy, f.name, r.Schedules, api.JoinHazards(f.hazards, " or "))
	}
	return ""
}

// Sentences says what searches have found about a strategy, a sentence for each kind of fault.
func Sentences(results []Result, strategy string) (all []api.Text) {
	for _, r := range results {
		f, ok := r.fault()
		if !ok || r.Strategy != strategy || r.Bounds.Fenced {
			continue
		}
		text := api.Textf(
			"%[1]s schedules of %[2]d clients with %[3]s: %[4]s lose an update", "%[2]d 个客户端、%[5]s：%[1]s 种调度，其中 %[4]s 种丢失更新",
			number(r.Schedules), r.Bounds.Clients, f.name, number(r.Oversold), f.zh)
		if r.Stalled > 0 {
			text = plus(text, "; in %s, a client waits in vain", "；%s 种里有客户端白等", r.Stalled)
		}
		fenced := slices.IndexFunc(results, func(other Result) bool {
			b := r.Bounds
			b.Fenced = true
			return other.Strategy == strategy && other.Bounds == b
		})
		if fenced >= 0 {
			text = plus(text, "; fenced: %s", "；使用栅栏令牌：%s 种", results[fenced].Oversold)
		}
		if !r.Complete || fenced >= 0 && !results[fenced].Complete {
			text = api.Text{EN: text.EN + " (the search was ended before it was complete)", ZH: text.ZH + "（搜索未完成）"}
		}
		all = append(all, api.Text{EN: text.EN + ".", ZH: text.ZH + "。"})
	}
	return all
}

func plus(t api.Text, en, zh string, n int) api.Text {
	more := api.Textf(en, zh, number(n))
	return api.Text{EN: t.EN + more.EN, ZH: t.ZH + more.ZH}
}

// number writes 12,345 for 12345.
func number(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", number(n/1000), n%1000)
}
