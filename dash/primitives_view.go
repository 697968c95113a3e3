package dash

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"oversell/api"
)

type lanes struct {
	Lanes []lane
	Ticks []tick
}

type lane struct {
	*visitor
	Bars   []bar
	Waited float64 // in seconds
	Held   float64
}

// bar is a drawn span. X (the start) and W (the width) are in per cent of the time axis.
type bar struct {
	Holds bool
	X, W  float64
}

type tick struct {
	X  float64
	At string
}

func (s span) until(now time.Time) time.Time {
	if s.to.IsZero() {
		return now
	}
	return s.to
}

func draw(visitors []*visitor, now time.Time) (drawn lanes) {
	from, to := now, time.Time{}
	for _, v := range visitors {
		for _, s := range v.Spans {
			if s.from.Before(from) {
				from = s.from
			}
			if end := s.until(now); end.After(to) {
				to = end
			}
		}
	}
	length := max(1, to.Sub(from).Seconds())
	for _, v := range visitors {
		l := lane{visitor: v}
		for _, s := range v.Spans {
			took := max(0, s.until(now).Sub(s.from).Seconds())
			if s.state == holding {
				l.Held += took
			} else {
				l.Waited += took
			}
			l.Bars = append(l.Bars, bar{s.state == holding, 100 * s.from.Sub(from).Seconds() / length, max(0.3, 100*took/length)})
		}
		drawn.Lanes = append(drawn.Lanes, l)
	}
	step := 60.0
	for _, s := range []float64{30, 20, 10, 5, 2, 1, 0.5, 0.2} {
		if length/s <= 5 {
			step = s
		}
	}
	for at := 0.0; at < length*0.88; at += step {
		drawn.Ticks = append(drawn.Ticks, tick{100 * at / length, fmt.Sprintf("%.3g s", at)})
	}
	return drawn
}

type targetView struct {
	target
	observed
	Title    api.Text
	Permits  int
	Count    map[string]int // visitors by state, and those that hold something by action
	visitors []*visitor
	now      time.Time
}

// Slots returns for each permit of a semaphore whether a visitor holds the permit.
func (m targetView) Slots() []bool {
	slots := make([]bool, min(m.Permits, 50))
	for i := range slots {
		slots[i] = i < m.Count["permit"]
	}
	return slots
}

// Drawn returns one lane with bars for each request that this page sent. Requests that hold or held
// the primitive come first, in the order of their entry. So the waves of a semaphore are a staircase.
func (m targetView) Drawn() lanes {
	entered := func(v *visitor) time.Time {
		for _, s := range v.Spans {
			if s.state == holding {
				return s.from
			}
		}
		return m.now.Add(time.Hour) // it still waits, or gave up
	}
	slices.SortStableFunc(m.visitors, func(a, b *visitor) int { return entered(a).Compare(entered(b)) })
	return draw(m.visitors, m.now)
}

func (t *primitivesPage) views() (all []targetView) {
	for _, v := range slices.Backward(t.visitors) {
		i := slices.IndexFunc(all, func(m targetView) bool { return m.target == v.At })
		if i < 0 {
			i = len(all)
			all = append(all, targetView{target: v.At, observed: t.observed[v.At], Title: v.Of.Title, Count: map[string]int{}, now: time.Now()})
		}
		m := &all[i]
		m.visitors = append([]*visitor{v}, m.visitors...)
		m.Permits = cmp.Or(m.Permits, v.Permits)
		switch v.State {
		case holding:
			m.Count[v.As] += max(1, v.Qty)
		case sent:
			m.Count[string(waiting)]++
		default:
			m.Count[string(v.State)]++
		}
	}
	return all
}
