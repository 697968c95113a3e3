package timeline

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

type sales struct {
	Y           int
	Base        int
	Sold, Taken string // paths, in hundredths of a per cent of the width
	Gaps        []gap
	Total       string
	Gone        string // from the row; empty if it is not known
}

type gap struct {
	X, W      string
	Y, Height int
}

func (t Timeline) drawSales(y int) *sales {
	const height = 44
	s := &sales{Y: y, Base: 22 + height}
	most := 1
	for _, sale := range slices.Concat(t.sales, t.taken) {
		most = max(most, sale.pieces)
	}
	at := func(pieces int) int { return s.Base - height*max(0, pieces)/most }
	s.Sold, s.Taken = t.path(t.sales, at), t.path(t.taken, at)
	s.Total = t.say("%d sold", "卖出 %d", t.sales[len(t.sales)-1].pieces)
	if len(t.taken) > 0 {
		for _, m := range t.missing() {
			s.Gaps = append(s.Gaps, gap{t.at(m.from), percent(t.x(m.to) - t.x(m.from)), at(m.sold), at(m.taken) - at(m.sold)})
		}
		s.Gone = t.say("%d taken from stock", "库存减少 %d", t.taken[len(t.taken)-1].pieces)
	}
	return s
}

// path draws a horizontal line from each step to the next one, and to the end.
func (t Timeline) path(steps []sale, at func(pieces int) int) string {
	if len(steps) == 0 {
		return ""
	}
	x := func(at time.Duration) string { return strconv.Itoa(int(math.Round(100 * t.x(at)))) }
	var path strings.Builder
	path.WriteString("M" + x(steps[0].at) + "," + strconv.Itoa(at(0)))
	for _, step := range steps {
		path.WriteString("H" + x(step.at) + "V" + strconv.Itoa(at(step.pieces)))
	}
	return path.String() + "H" + x(t.to)
}

// missing is a time in which more pieces were sold than were taken from the stock.
type missing struct {
	from, to    time.Duration
	sold, taken int
}

func (t Timeline) missing() (all []missing) {
	if len(t.taken) == 0 { // the pieces taken are not known
		return nil
	}
	steps := slices.Concat(t.sales, t.taken)
	slices.SortFunc(steps, func(a, b sale) int { return cmp.Compare(a.at, b.at) })
	for i, step := range steps {
		end := t.to
		if i+1 < len(steps) {
			end = steps[i+1].at
		}
		// The clocks of lab and replica differ: a write may seem later than its sale.
		sold, taken := piecesAt(t.sales, step.at), piecesAt(t.taken, step.at+sameMoment)
		if sold > taken && end > step.at {
			all = append(all, missing{step.at, end, sold, taken})
		}
	}
	return all
}

func piecesAt(steps []sale, at time.Duration) (pieces int) {
	for _, s := range steps {
		if s.at <= at {
			pieces = s.pieces
		}
	}
	return pieces
}
