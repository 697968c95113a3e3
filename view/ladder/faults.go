package ladder

import (
	"slices"
	"strings"
	"time"

	"oversell/lab/history"
)

// serverOf returns the column for a fault of a server.
func (s *scene) serverOf(who string) int {
	if s.lock < 0 || s.stock >= 0 && strings.HasPrefix(who, "mysql") {
		return s.stock
	}
	return s.lock
}

func (s *scene) lastMoment() (last time.Duration) {
	for _, m := range s.moments {
		last = max(last, m.at)
	}
	return last
}

// ended says that a fault of a client's replica is over, or returns "".
func (s *scene) ended(what string) string {
	switch {
	case strings.HasPrefix(what, "stop"):
		return s.say("resumes", "恢复运行")
	case strings.HasPrefix(what, "kill"):
		return s.say("restarted", "已重启")
	case strings.HasPrefix(what, "cut from"):
		return s.say("is connected again", "连接恢复")
	}
	return ""
}

// addOverlap adds a sentence about the first two holders. If one of them wrote, it is a violation.
func (s *scene) addOverlap() {
	acted := slices.IndexFunc(s.overlaps, func(o overlap) bool { return o.acted })
	if len(s.overlaps) == 0 {
		return
	}
	o := s.overlaps[max(0, acted)]
	r := Rung{Kind: Remark, Words: s.say("%[1]s still believes that it holds the lock", "%[1]s 仍以为自己持锁", o.first.name)}
	if acted >= 0 {
		r = Rung{Kind: Alarm, Words: s.say("✗ %[1]s and %[2]s both believe that they hold the lock", "✗ %[1]s 和 %[2]s 都以为自己持锁", o.first.name, o.second.name), Anchor: violation}
	}
	s.add(o.from, r)
}

// overwrites reports whether the write of a client set the stock to no less than it was before: then the
// sale before it is lost.
func (t Recorded) overwrites(task *task, at time.Duration) bool {
	if t.lostUpdate() == "" || task.op.Outcome != history.OK {
		return false
	}
	return t.initial-task.op.Remaining <= piecesAt(t.taken, at-1)
}

// addBalance adds a sentence after the last answer: whether each sale was taken from the stock.
func (s *scene) addBalance() {
	if len(s.sales) == 0 || len(s.taken) == 0 || s.left > 0 {
		return
	}
	if s.lostUpdate() == "" {
		if sold, taken := s.sales[len(s.sales)-1].pieces, s.taken[len(s.taken)-1].pieces; sold == taken {
			s.add(s.lastMoment(), Rung{Kind: Remark, Words: s.say("✓ %d sold, %d taken from stock", "✓ 卖出 %d，库存减少 %d", sold, taken)})
		}
		return
	}
	r := Rung{Kind: Alarm, Words: "✗ " + strings.TrimRight(s.lostUpdate(), ".。")}
	if !slices.ContainsFunc(s.moments, func(m moment) bool { return m.Anchor == violation }) {
		r.Anchor = violation
	}
	s.add(s.lastMoment(), r)
}
