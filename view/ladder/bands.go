package ladder

import (
	"slices"
	"time"

	"oversell/lab/history"
)

const (
	mostRungs = 44
	keptEnd   = 16 // of a picture with too many rungs
	quiet     = 150 * time.Millisecond
)

// shortened returns the moments with gaps for the quiet times. Of too many moments, it leaves out those
// in the middle.
func (s *scene) shortened() (all []moment) {
	if n := len(s.moments); n > mostRungs {
		begin := mostRungs - keptEnd
		gap := moment{Rung{Kind: Gap, Words: s.say("%d steps are not shown", "有 %d 步没有画出", n-mostRungs)}, s.moments[begin].at}
		s.moments = slices.Concat(s.moments[:begin], []moment{gap}, s.moments[n-keptEnd:])
	}
	for i, m := range s.moments {
		if i > 0 {
			length := m.at - s.moments[i-1].at
			if length > quiet && length > (s.to-s.from)/25 && m.Kind != Gap {
				all = append(all, moment{Rung{Kind: Gap, At: s.say("⋯ %.2f s", "⋯ %.2f 秒", length.Seconds())}, m.at - 1})
			}
		}
		all = append(all, m)
	}
	return all
}

// rungAt returns the index of the first rung at a time or later.
func (s *scene) rungAt(at time.Duration) int {
	if i := slices.IndexFunc(s.moments, func(m moment) bool { return m.at >= at }); i >= 0 {
		return i
	}
	return len(s.moments)
}

// band adds a band unless it is outside of the picture.
func (s *scene) band(all []Band, column int, shape Shape, from, to time.Duration) []Band {
	b := Band{Column: column, From: s.rungAt(from), To: s.rungAt(to), Shape: shape}
	if b.From >= b.To || b.From == len(s.moments) {
		return all
	}
	return append(all, b)
}

func (s *scene) bands() (all []Band) {
	for i, task := range s.tasks {
		for _, w := range task.waits {
			all = s.band(all, i, Waits, w.from, w.to)
		}
		for _, h := range task.holds {
			all = s.band(all, i, Holds, h.from, h.to)
			if h.lapses() {
				all = s.band(all, i, Over, lapseRung(h), h.to)
			}
		}
		for _, o := range s.overlaps {
			if o.acted && (o.first == task || o.second == task) {
				all = s.band(all, i, Both, o.from, o.to)
			}
		}
	}
	for _, f := range s.spans {
		columns, shape := s.affected(f.Who), Failed
		if f.Kind() == history.Frozen {
			shape = Frozen
		}
		if len(columns) == 0 {
			columns = []int{max(0, s.serverOf(f.Who))}
		}
		for _, c := range columns {
			all = s.band(all, c, shape, f.From, f.To)
		}
	}
	if s.lock >= 0 {
		all = append(all, s.onServer()...)
	}
	return all
}

// onServer returns the holders of the lock, as its server has them: until a lease ends, and after the
// death of a holder.
func (s *scene) onServer() (all []Band) {
	var ends []time.Duration
	for _, task := range s.tasks {
		for _, h := range task.holds {
			end := h.to
			if h.lapses() {
				end = lapseRung(h)
			} else if h.ragged {
				end = s.nextHold(h)
			}
			for _, b := range s.band(nil, s.lock, Holds, h.from, end) {
				b.Name = task.name
				for _, e := range ends {
					if e > h.from {
						b.Shift += 22
					}
				}
				all, ends = append(all, b), append(ends, end)
			}
		}
	}
	return all
}

// nextHold returns when the next request acquired the lock of a holder that did not release it.
func (s *scene) nextHold(of stretch) time.Duration {
	next := s.to + time.Hour
	for _, task := range s.tasks {
		for _, h := range task.holds {
			if h.from > of.from && h.from >= of.to {
				next = min(next, h.from)
			}
		}
	}
	return next
}
