package timeline

import (
	"cmp"
	"embed"
	"html/template"
	"slices"
	"strconv"
	"time"
)

//go:embed timeline.svg.tmpl timeline.css
var files embed.FS

// Widths are in per cent and heights in pixels, so that bars grow with the window and letters
// keep their size. In the narrowest picture, which timeline.css sets, the words just fit.
const (
	narrowest = 760.0
	before    = 12.0 // per cent, for the names of lanes and rows
	plot      = 69.0 // per cent, for the time; the rest is for the answers
	letter    = 100 * 6.6 / narrowest
)

// Heights in pixels.
const (
	lineHeight   = 22 // a lane's name, a fault's name
	rowHeight    = 44 // words, bar, gap
	laneGap      = 12
	axisHeight   = 26
	pauseHeight  = 18
	salesHeight  = 84
	legend       = 30
	lapsedLegend = 25 // a second line of the legend
)

// drawing has the data of the template. All x and widths are in per cent.
type drawing struct {
	ID, Title    string
	timeline     Timeline
	Height       int
	Lanes        []lane
	Ticks        []tick
	Pauses       []pause
	AxisY        int
	Sales        *sales
	LegendY      int  // 0 for a picture without a legend
	Ragged, Both bool // whether the legend must explain them
	Lapsed       bool
	Left         string
}

// lane is a replica, or another server with a fault.
type lane struct {
	Name   string
	Y      int
	Height int
	Faults []fault
	Rows   []row
}

type fault struct {
	box
	Name  string
	TextY int
}

type row struct {
	Name, Answer string
	Y            int
	X, End       string // where it begins and ends
	AnswerX      string
	Answered     string // position of the request's answer; empty without an answer
	Outcome      string // ok, refused, unknown
	Waits, Holds []box
	Both         []box
	Lapsed       []box    // from the end of the lease to the release
	Cuts         []string // the middles of the axis breaks that the bars cross
	Marks        []mark
	Labels       []label
}

type box struct {
	X, W, End string
	Ragged    bool
	Acted     bool
	Thin      bool // too thin to be seen
}

type mark struct{ X, Kind string }

type tick struct{ X, Text string }

// T returns a word in the picture's language.
func (d drawing) T(word string) string { return d.timeline.word(word) }

func pictures() *template.Template {
	return template.Must(template.ParseFS(files, "timeline.svg.tmpl"))
}

// Style returns the style sheet of the pictures, for the head of a page.
func Style() template.CSS {
	css, _ := files.ReadFile("timeline.css") // it exists: it is embedded
	return template.CSS(css)                 //nolint:gosec // our own
}

func (t Timeline) draw(id string) drawing {
	d := drawing{ID: id, timeline: t, Title: t.title(), Left: t.Left(), Ticks: t.ticks(), Pauses: t.pauses()}
	y := 4
	for _, name := range t.laneNames() {
		l := t.lane(name, y)
		y += l.Height + laneGap
		d.Lanes = append(d.Lanes, l)
	}
	d.AxisY = y
	y += axisHeight
	if len(d.Pauses) > 0 {
		y += pauseHeight
	}
	if len(t.sales) > 0 {
		d.Sales = t.drawSales(y)
		y += salesHeight
	}
	d.Height = y
	d.Both = len(t.overlaps) > 0
	for _, task := range t.tasks {
		d.Lapsed = d.Lapsed || slices.ContainsFunc(task.holds, stretch.lapses)
		d.Ragged = d.Ragged || slices.ContainsFunc(slices.Concat(task.waits, task.holds), func(s stretch) bool { return s.ragged })
	}
	if !t.bare {
		d.LegendY = y
		d.Height += legend
		if d.Lapsed {
			d.Height += lapsedLegend
		}
	}
	return d
}

func percent(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) + "%" }

func (t Timeline) at(at time.Duration) string { return percent(t.x(at)) }

func (t Timeline) laneNames() []string {
	var busy, others []string
	for _, task := range t.tasks {
		busy = append(busy, task.replica)
	}
	for _, s := range t.spans {
		if !slices.Contains(busy, s.Who) {
			others = append(others, s.Who)
		}
	}
	slices.SortFunc(busy, byNumber)
	slices.SortFunc(others, byNumber)
	return append(slices.Compact(busy), slices.Compact(others)...)
}

// byNumber sorts replica-2 before replica-10, and requests without a replica last.
func byNumber(a, b string) int {
	if a == "" || b == "" {
		return cmp.Compare(b, a)
	}
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

func (t Timeline) lane(name string, y int) lane {
	l := lane{Name: cmp.Or(name, t.word("no replica")), Y: y}
	for _, s := range t.spans {
		if s.Who == name {
			l.Faults = append(l.Faults, fault{t.box(stretch{from: s.From, to: s.To}), t.fault(s.What), 15 + lineHeight*len(l.Faults)})
		}
	}
	l.Height = lineHeight * max(1, len(l.Faults))
	for _, task := range t.tasks {
		if task.replica == name {
			l.Rows = append(l.Rows, t.row(task, l.Height))
			l.Height += rowHeight
		}
	}
	return l
}

func (t Timeline) row(task *task, y int) row {
	r := row{Name: task.name, Y: y, Answer: t.answer(task), X: t.at(task.began()), End: t.at(task.ended()), AnswerX: t.at(task.ended())}
	if task.op != nil {
		r.X = t.at(min(task.op.Call, task.began()))
		r.Answered, r.Outcome = t.at(task.op.Return), task.op.Outcome.String()
	}
	for _, s := range task.waits {
		r.Waits = append(r.Waits, t.box(s))
	}
	for _, s := range task.holds {
		r.Holds = append(r.Holds, t.box(s))
		if s.lapses() {
			r.Lapsed = append(r.Lapsed, t.box(stretch{from: s.lapse, to: s.to}))
		}
	}
	for _, s := range t.scale {
		if s.quiet && task.began() < s.from && s.to < task.ended() {
			r.Cuts = append(r.Cuts, t.at(s.from+(s.to-s.from)/2))
		}
	}
	for _, o := range t.overlaps {
		if o.first == task || o.second == task {
			b := t.box(stretch{from: o.from, to: o.to})
			b.Acted, b.Thin = o.acted, t.x(o.to)-t.x(o.from) < 1
			r.Both = append(r.Both, b)
		}
	}
	for _, e := range task.events {
		switch e.Step {
		case "asked", "granted", "released": // are the bars' ends
		case "read", "writing", "written":
			r.Marks = append(r.Marks, mark{t.at(e.At), e.Step})
		default:
			r.Marks = append(r.Marks, mark{t.at(e.At), "own"})
		}
	}
	r.Labels = t.labels(task)
	return r
}

func (t Timeline) box(s stretch) box {
	return box{X: t.at(s.from), W: percent(t.x(s.to) - t.x(s.from)), End: t.at(s.to), Ragged: s.ragged}
}
