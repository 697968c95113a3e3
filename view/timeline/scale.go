package timeline

import (
	"cmp"
	"slices"
	"time"
)

// The scale compresses the longest quiet times to axis breaks. Otherwise, a pause of ten seconds
// would leave a few pixels for the milliseconds in which two requests hold the lock.
const (
	mostBreaks = 4
	breakWidth = 6.0 // per cent
	// A quiet time is compressed if it is longer than shortest and than a part of the recording.
	shortest   = 100 * time.Millisecond
	quietShare = 10
)

// segment is a part of the time axis. Its scale is linear.
type segment struct {
	from, to time.Duration
	x, width float64 // in per cent of the picture
	quiet    bool    // nothing happens in it, and its scale is compressed
}

// scaleOf divides the time from the first to the last moment into segments. The segments in which
// something happens share the width by their number of moments. Telling moments count more.
func scaleOf(moments, telling []time.Duration) []segment {
	slices.Sort(moments)
	var segments []segment
	begin := moments[0]
	end := max(moments[len(moments)-1], begin+time.Millisecond)
	pad := (end - begin) / 1000 // much shorter than a quiet time
	for _, gap := range longestGaps(moments) {
		segments = append(segments, segment{from: begin, to: gap.from + pad}, segment{from: gap.from + pad, to: gap.to - pad, quiet: true})
		begin = gap.to - pad
	}
	end += max((end-begin)/20, time.Millisecond) // room for a change by the last moment
	segments = append(segments, segment{from: begin, to: end})
	return stretched(segments, moments, telling)
}

// stretched sets the place and the width of each segment.
func stretched(segments []segment, moments, telling []time.Duration) []segment {
	within := func(s segment, all []time.Duration) (n int) {
		for _, at := range all {
			if s.from <= at && at <= s.to {
				n++
			}
		}
		return n
	}
	weights, total, left := make([]float64, len(segments)), 0.0, plot
	for i, s := range segments {
		if s.quiet {
			left -= breakWidth
			continue
		}
		weights[i] = float64(4 + within(s, moments) + 3*within(s, telling))
		total += weights[i]
	}
	x := before
	for i := range segments {
		segments[i].x, segments[i].width = x, breakWidth
		if !segments[i].quiet {
			segments[i].width = left * weights[i] / total
		}
		x += segments[i].width
	}
	return segments
}

type span struct{ from, to time.Duration }

// longestGaps returns the longest times between two moments, in the order of time.
func longestGaps(moments []time.Duration) (gaps []span) {
	total := moments[len(moments)-1] - moments[0]
	for i := range moments[1:] {
		if gap := (span{moments[i], moments[i+1]}); gap.to-gap.from > total/quietShare && gap.to-gap.from > shortest {
			gaps = append(gaps, gap)
		}
	}
	slices.SortFunc(gaps, func(a, b span) int { return cmp.Compare(b.to-b.from, a.to-a.from) })
	gaps = gaps[:min(mostBreaks, len(gaps))]
	slices.SortFunc(gaps, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	return gaps
}

// moments returns the times at which something happens in the picture. telling are the times of
// overlaps and of ends of leases.
func (t Timeline) moments() (all, telling []time.Duration) {
	all = []time.Duration{t.from, t.to}
	for _, task := range t.tasks {
		for _, e := range task.events {
			all = append(all, e.At)
		}
		if task.op != nil {
			all = append(all, task.op.Call, task.op.Return)
		}
		for _, h := range task.holds {
			if h.lapses() {
				telling = append(telling, h.lapse)
			}
		}
	}
	for _, s := range t.spans {
		all = append(all, s.From, s.To)
	}
	for _, o := range t.overlaps {
		telling = append(telling, o.from)
	}
	return append(all, telling...), telling
}

// x returns the position of a time, in per cent of the width.
func (t Timeline) x(at time.Duration) float64 {
	s := t.scale[len(t.scale)-1]
	if i := slices.IndexFunc(t.scale, func(s segment) bool { return at <= s.to }); i >= 0 {
		s = t.scale[i]
	}
	share := float64(at-s.from) / float64(s.to-s.from)
	return s.x + s.width*min(1, max(0, share))
}

// ticks returns the ticks of the axis, with at least one tick in each segment that is not quiet.
func (t Timeline) ticks() (ticks []tick) {
	const apart = 8.6 // per cent between two ticks, so that their texts do not touch
	for _, s := range t.scale {
		if s.quiet {
			continue
		}
		step := time.Microsecond
		for i := 0; s.width*float64(step)/float64(s.to-s.from) < apart; i++ {
			step = step * []time.Duration{2, 5, 2}[i%3] / []time.Duration{1, 2, 1}[i%3] // 1, 2, 5, 10
		}
		first := (s.from - t.from + step - 1) / step * step
		if t.from+first > s.to {
			first = (s.from - t.from + (s.to-s.from)/2).Round(time.Millisecond)
		}
		for at := first; t.from+at <= s.to; at += step {
			ticks = append(ticks, tick{t.at(t.from + at), at.String()})
		}
	}
	return ticks
}

// pause is a compressed time on the axis.
type pause struct {
	box
	Middle, Text string
}

func (t Timeline) pauses() (pauses []pause) {
	for _, s := range t.scale {
		if s.quiet {
			length := (s.to - s.from).Round(10 * time.Millisecond)
			pauses = append(pauses, pause{t.box(stretch{from: s.from, to: s.to}), t.at(s.from + (s.to-s.from)/2), "⋯ " + length.String() + " ⋯"})
		}
	}
	return pauses
}
