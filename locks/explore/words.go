package explore

import (
	"strings"

	"oversell/api"
)

// Shortest says what the shortest schedule with the harm shows. It is empty for a harm that the card of a correct
// lock may allow.
func (h Harm) Shortest() api.Text {
	return map[Harm]api.Text{
		LosesUpdate: {EN: "The shortest schedule that loses an update", ZH: "丢失更新的最短调度"},
		WaitsInVain: {EN: "The shortest schedule in which a client waits in vain", ZH: "有客户端白等的最短调度"},
	}[h]
}

// Sentence says what the search has found.
func (r Result) Sentence() api.Text {
	n, of := number(r.Oversold), number(r.Schedules)
	switch {
	case r.Oversold == 0 && r.Stalled > 0:
		return api.Textf("%[1]s: none of %[2]s schedules loses an update, but in %[3]s a client waits in vain for the lock.", "%[1]s：%[2]s 种调度都没有丢失更新，但有 %[3]s 种里有客户端白等锁。",
			r.Strategy, of, number(r.Stalled))
	case r.Oversold == 0:
		return api.Textf("%[1]s: none of %[2]s schedules loses an update.", "%[1]s：%[2]s 种调度都没有丢失更新。", r.Strategy, of)
	}
	return api.Textf("%[1]s: %[2]s of %[3]s schedules lose an update.", "%[1]s：%[3]s 种调度中有 %[2]s 种丢失更新。", r.Strategy, n, of)
}

// Sign returns the sign of what the search has found.
func (r Result) Sign() string {
	switch {
	case r.Oversold > 0:
		return "✗"
	case r.Stalled > 0:
		return "!"
	case r.Complete:
		return "✓"
	}
	return "?"
}

// Extent says whether the search has found all schedules.
func (r Result) Extent() api.Text {
	if r.Complete {
		return api.Text{EN: "These are all schedules within the bounds.", ZH: "这是界限内的全部调度。"}
	}
	return api.Text{EN: "These are not all schedules: the search was ended before it was complete.", ZH: "这不是全部调度：搜索在完成之前就结束了。"}
}

// Count is a number of schedules, and what they have in common.
type Count struct {
	N  string
	Of api.Text
}

// Counts returns how many schedules end in which way.
func (r Result) Counts() []Count {
	return []Count{
		{number(r.Oversold), api.Text{EN: "lose an update", ZH: "丢失更新"}},
		{number(r.Two), api.Text{EN: "have two holders at the same time, which may do no harm", ZH: "同时有两个持有者（不一定有害）"}},
		{number(r.Stalled), api.Text{EN: "end with a client that waits in vain for the lock", ZH: "有客户端白等锁"}},
		{number(r.Aborted), api.Text{EN: "end with a client that gives up and takes nothing", ZH: "有客户端放弃，没有扣减库存"}},
	}
}

// Trail returns the text of the shortest schedule, from which Replay repeats it.
func (r Result) Trail() string {
	var tokens []string
	for _, s := range r.Shortest {
		tokens = append(tokens, s.Token)
	}
	return strings.Join(tokens, ",")
}
