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
