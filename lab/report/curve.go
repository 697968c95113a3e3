package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"oversell/api"
	"oversell/lab/terminal"
)

// Curve is a sweep of a strategy with ever more clients. Scripts rely on its JSON keys.
type Curve struct {
	Strategy string  `json:"strategy"`
	Knee     *Knee   `json:"knee"` // null if throughput grew with the clients to the end
	Points   []Point `json:"points"`
}

// Point is one run of a sweep.
type Point struct {
	Result
	RetriesPerSale float64 `json:"retries_per_sale"`
}

// Knee is the last point before throughput stopped growing with the clients.
type Knee struct {
	Clients        int     `json:"clients"`
	ThroughputPerS float64 `json:"throughput_per_s"`
	Rule           string  `json:"rule"`
}

const kneeRule = "the last point up to which throughput still grew by at least half as much as the clients did"

// Curves groups the results by strategy, in the order of the results.
func Curves(results []Result) []Curve {
	var curves []Curve
	for _, r := range results {
		i := slices.IndexFunc(curves, func(c Curve) bool { return c.Strategy == r.Strategy })
		if i < 0 {
			i = len(curves)
			curves = append(curves, Curve{Strategy: r.Strategy})
		}
		perSale := ratio(float64(r.Retries), float64(r.Samples-r.SoldOut-r.Errors))
		curves[i].Points = append(curves[i].Points, Point{Result: r, RetriesPerSale: round(perSale, 3)})
	}
	for i := range curves {
		curves[i].Knee = knee(curves[i].Points)
	}
	return curves
}

// knee returns the first point after which throughput grew less than half as much as the clients.
func knee(points []Point) *Knee {
	for i := range len(points) - 1 {
		here, next := points[i], points[i+1]
		clients := ratio(float64(next.Clients), float64(here.Clients)) - 1
		throughput := ratio(next.ThroughputPerS, here.ThroughputPerS) - 1
		if throughput < clients/2 {
			return &Knee{here.Clients, here.ThroughputPerS, kneeRule}
		}
	}
	return nil
}

// Sentence describes the knee.
func (c Curve) Sentence() api.Text {
	if c.Knee == nil {
		last := c.Points[len(c.Points)-1].Clients
		return api.Textf("%[1]s: no knee up to %[3]s: throughput still grew by at least half as much as the clients did.",
			"%[1]s：到 %[2]d 个客户端为止没有拐点：吞吐量的增幅始终不低于客户端增幅的一半。", c.Strategy, last, count(last, "client", "clients"))
	}
	return api.Textf("%[1]s: the knee is at %[4]s and %.1[3]f/s, %[5]s.",
		"%[1]s：拐点在 %[2]d 个客户端、每秒 %.1[3]f 个请求处：此后吞吐量的增幅不到客户端增幅的一半。",
		c.Strategy, c.Knee.Clients, c.Knee.ThroughputPerS, count(c.Knee.Clients, "client", "clients"), c.Knee.Rule)
}

// bend is a curve in a box of 100 x 100, with the clients on a logarithmic scale.
type bend struct {
	Label    string
	Says     api.Text
	Broken   string // in how many runs an update was lost; empty if in none
	Pictures []picture
	Table    terminal.Table
}

type picture struct {
	Title, Top  string
	First, Last string // number of clients
	Line, Area  string
	KneeX       string // in per cent; empty without a knee
}

func bends(curves []Curve) []bend {
	all := make([]bend, len(curves))
	for i, c := range curves {
		all[i] = bend{
			Label: c.Strategy, Says: c.Sentence(), Table: c.table(),
			Pictures: []picture{
				c.picture("Throughput", "%.0f/s", func(p Point) float64 { return p.ThroughputPerS }),
				c.picture("99% Line", "%.0f ms", func(p Point) float64 { return p.P99MS }),
			},
		}
		broken := 0
		for _, p := range c.Points {
			if p.Verdict == api.Broken {
				broken++
			}
		}
		if broken > 0 {
			all[i].Broken = fmt.Sprintf("Updates were lost in %d of %s.", broken, count(len(c.Points), "run", "runs"))
		}
	}
	return all
}

func (c Curve) picture(title, format string, of func(Point) float64) picture {
	top := 0.0
	for _, p := range c.Points {
		top = max(top, of(p))
	}
	first, last := c.Points[0].Clients, c.Points[len(c.Points)-1].Clients
	at := func(clients int) float64 {
		return 100 * ratio(math.Log(float64(clients)/float64(first)), math.Log(float64(last)/float64(first)))
	}
	points := make([]string, len(c.Points))
	for i, p := range c.Points {
		points[i] = fmt.Sprintf("%.2f,%.2f", at(p.Clients), 100-100*ratio(of(p), top))
	}
	path := strings.Join(points, " L")
	drawn := picture{
		Title: title, Top: fmt.Sprintf(format, top), First: strconv.Itoa(first), Last: strconv.Itoa(last),
		Line: "M" + path, Area: "M0,100 L" + path + " L" + fmt.Sprintf("%.2f", at(last)) + ",100 Z",
	}
	if c.Knee != nil {
		drawn.KneeX = fmt.Sprintf("%.2f", at(c.Knee.Clients))
	}
	return drawn
}
