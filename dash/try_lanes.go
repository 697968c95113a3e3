package dash

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// goodOutcomes are those of a visitor that got what it came for.
var goodOutcomes = map[string]bool{ //nolint:gochecknoglobals // constant
	"held": true, "opened": true, "counted": true, "set": true, "was_set": true, "passed": true, "removed": true,
	"was_not_set": true, "entered": true, "left": true, "read": true, "changed": true,
}

// outcomeText says what came of a visit.
func outcomeText(a told) Text {
	number := func(n *int64) string {
		if n == nil {
			return "?"
		}
		return fmt.Sprint(*n)
	}
	left := ""
	if a.Left != nil {
		left = fmt.Sprint(*a.Left)
	}
	switch a.Outcome {
	case "held":
		return Text{"gave it back", "已归还"}
	case "opened":
		return Text{"the latch is open", "闭锁已打开"}
	case "counted":
		return Text{"counted down, left: " + left, "倒数一次，还剩 " + left}
	case "set":
		return Text{"put the barrier up", "设置了屏障"}
	case "was_set":
		return Text{"the barrier was up already", "屏障早已设置"}
	case "passed":
		return Text{"passed the barrier", "通过了屏障"}
	case "removed":
		return Text{"took the barrier away", "撤去了屏障"}
	case "was_not_set":
		return Text{"there was no barrier", "本来就没有屏障"}
	case "entered":
		return Text{"entered with the others", "与其他成员一起进入"}
	case "left":
		return Text{"left with the others", "与其他成员一起离开"}
	case "read":
		return Text{"read " + number(a.Value), "读到 " + number(a.Value)}
	case "changed":
		return Text{"made it " + number(a.After), "改成了 " + number(a.After)}
	case "not_acquired":
		return Text{"gave up: it waited for too long", "放弃了：等得太久"}
	case "mismatch":
		return Text{"refused: in use with another size", "被拒绝：正以另一数目使用"}
	default:
		return Text{a.Outcome + ": " + a.Detail, a.Outcome + "：" + a.Detail}
	}
}

// lanes are the visitors of a spot as the page draws them, on one axis of time.
type lanes struct {
	Lanes []lane
	Ticks []tick
}

type lane struct {
	*visitor
	Bars   []bar
	Waited float64 // seconds
	Held   float64
}

// bar is a span, in per cent of the axis.
type bar struct {
	Holds bool
	X, W  float64
}

type tick struct {
	X  float64
	At string
}

func draw(visitors []*visitor, now time.Time) lanes {
	from, to := visitors[0].Spans[0].from, time.Time{}
	for _, v := range visitors {
		for _, s := range v.Spans {
			end := s.to
			if end.IsZero() {
				end = now
			}
			if s.from.Before(from) {
				from = s.from
			}
			if end.After(to) {
				to = end
			}
		}
	}
	length := max(1, to.Sub(from).Seconds())
	var drawn lanes
	for _, v := range visitors {
		l := lane{visitor: v}
		for _, s := range v.Spans {
			end := s.to
			if end.IsZero() {
				end = now
			}
			took := max(0, end.Sub(s.from).Seconds())
			holds := s.state == holding
			if holds {
				l.Held += took
			} else {
				l.Waited += took
			}
			l.Bars = append(l.Bars, bar{holds, 100 * s.from.Sub(from).Seconds() / length, max(0.3, 100*took/length)})
		}
		drawn.Lanes = append(drawn.Lanes, l)
	}
	step := 60.0
	for _, s := range []float64{0.2, 0.5, 1, 2, 5, 10, 20, 30} {
		if length/s <= 5 {
			step = s
			break
		}
	}
	for at := 0.0; at < length*0.88; at += step {
		drawn.Ticks = append(drawn.Ticks, tick{100 * at / length, fmt.Sprintf("%.3g s", at)})
	}
	return drawn
}

// meeting is a spot with who is there.
type meeting struct {
	spot
	Title                            Text
	Permits                          int
	Taken, Waiting, Readers, Writers int
	Inside, Leaving                  int
	Left                             *int
	Up                               string
	Value                            *int64
	visitors                         []*visitor
	now                              time.Time
}

// Slots are the permits, the taken ones first.
func (m meeting) Slots() []bool {
	slots := make([]bool, min(m.Permits, 50))
	for i := range slots {
		slots[i] = i < m.Taken
	}
	return slots
}

// Drawn are the visitors' lanes, from the first who came.
func (m meeting) Drawn() lanes { return draw(m.visitors, m.now) }

// places are where visitors meet, the newest first.
func (t *primitivesPage) places() []meeting {
	now := time.Now()
	var all []meeting
	for _, v := range slices.Backward(t.visitors) {
		i := slices.IndexFunc(all, func(m meeting) bool { return m.spot == v.Place })
		if i < 0 {
			f := t.facts[v.Place]
			i, all = len(all), append(all, meeting{spot: v.Place, Title: v.Of.Title, Left: f.Left, Up: f.Up, Value: f.Value, now: now})
		}
		m := &all[i]
		m.visitors = append([]*visitor{v}, m.visitors...)
		m.Permits = cmp.Or(m.Permits, v.Permits)
		switch {
		case v.State == waiting || v.State == sent:
			m.Waiting++
		case v.State == leaving:
			m.Leaving++
		case v.State != holding:
		case v.Action.ID == "read":
			m.Readers++
		case v.Action.ID == "write":
			m.Writers++
		case v.Action.ID == "permit":
			m.Taken++
		default:
			m.Inside++
		}
	}
	return all
}
