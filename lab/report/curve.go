package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"oversell/lab/check"
)

// Curve is a sweep of one strategy: the same load with more and more clients. Its JSON
// keys are a promise to scripts, as Result's.
type Curve struct {
	Strategy string  `json:"strategy"`
	Knee     *Knee   `json:"knee"` // null when throughput grew with the clients to the end
	Points   []Point `json:"points"`
}

// Point is one run of a sweep.
type Point struct {
	Result
	RetriesPerSale float64 `json:"retries_per_sale"`
}

// Knee is the last point that more clients were worth it for.
type Knee struct {
	Clients        int     `json:"clients"`
	ThroughputPerS float64 `json:"throughput_per_s"`
	Rule           string  `json:"rule"`
}

// kneeRule is what knee looks for.
const kneeRule = "the last point up to which throughput still grew by at least half as much as the clients did"

// Curves makes a curve of each strategy's results, in their order.
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

// knee is the point before the first step whose throughput grew by less than half of
// what the clients did: 100% more clients must bring 50% more sales. It is nil where
// there is none.
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

// Sentence says where the curve bends.
func (c Curve) Sentence() Sentence {
	last := c.Points[len(c.Points)-1]
	if c.Knee == nil {
		return Sentence{
			EN: fmt.Sprintf("%s: no knee up to %s: throughput still grew by at least half as much as the clients did.", c.Strategy, count(last.Clients, "client", "clients")),
			ZH: fmt.Sprintf("%s：到 %d 个客户端为止没有拐点：吞吐量的增幅始终不低于客户端增幅的一半。", c.Strategy, last.Clients),
		}
	}
	return Sentence{
		EN: fmt.Sprintf("%s: the knee is at %s and %.1f/s, %s.", c.Strategy, count(c.Knee.Clients, "client", "clients"), c.Knee.ThroughputPerS, c.Knee.Rule),
		ZH: fmt.Sprintf("%s：拐点在 %d 个客户端、每秒 %.1f 个请求处：此后吞吐量的增幅不到客户端增幅的一半。", c.Strategy, c.Knee.Clients, c.Knee.ThroughputPerS),
	}
}

// grid is the curve as a table. The knee and what went wrong are marked with words.
func (c Curve) grid(caption string) grid {
	g := grid{Caption: caption, Head: heads("Clients", "Throughput", "Median", "99% Line", "Retries per sale", "Lost updates", "Error %", "")}
	for _, p := range c.Points {
		mark := ""
		if c.Knee != nil && c.Knee.Clients == p.Clients {
			mark = "knee"
		}
		clients := strconv.Itoa(p.Clients)
		if p.Partial {
			clients += " (partial)"
		}
		g.Rows = append(g.Rows, []cell{
			{Text: clients},
			{Text: sampled(p.Result, "%.1f/sec", p.ThroughputPerS)},
			{Text: sampled(p.Result, "%.1f", p.P50MS)},
			{Text: sampled(p.Result, "%.1f", p.P99MS)},
			{Text: sampled(p.Result, "%.2f", p.RetriesPerSale)},
			{Text: lostUpdates(p.Result), Alarm: p.Verdict == check.Broken},
			{Text: sampled(p.Result, "%.2f%%", p.ErrorPct)},
			{Text: mark},
		})
	}
	return g
}

// CurveTables writes a table and a sentence for each curve, the Chinese one below if
// asked for, and what each failed request and lost update has to say.
func CurveTables(w io.Writer, curves []Curve, screen Screen, chinese bool) error {
	for _, c := range curves {
		text := c.Strategy + "\n" + c.grid("").render(screen.Color) + "\n" + c.Sentence().EN + "\n"
		if chinese {
			text += c.Sentence().ZH + "\n"
		}
		for _, warning := range c.Points[0].Warnings {
			text += "  warning: " + shorten(warning) + "\n"
		}
		if _, err := io.WriteString(w, text); err != nil {
			return fmt.Errorf("write table: %w", err)
		}
	}
	return nil
}

// CurveJSON writes the curves as one array.
func CurveJSON(w io.Writer, curves []Curve) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(slices.Concat([]Curve{}, curves)); err != nil {
		return fmt.Errorf("write json: %w", err)
	}
	return nil
}

// bend is a curve drawn into a box of 100 x 100, with the clients on a logarithmic
// scale, as they were chosen.
type bend struct {
	Label    string
	Says     Sentence
	Broken   string // how often an update was lost; empty: never
	Pictures []picture
	Table    grid
}

// picture is one figure over the clients.
type picture struct {
	Title, Top  string
	First, Last string // of the clients
	Line, Area  string
	KneeX       string // in per cent; empty: no knee
}

func bends(curves []Curve) []bend {
	all := make([]bend, len(curves))
	for i, c := range curves {
		all[i] = bend{
			Label: c.Strategy, Says: c.Sentence(), Table: c.grid("The figures, times in ms"),
			Pictures: []picture{
				c.picture("Throughput", "%.0f/s", func(p Point) float64 { return p.ThroughputPerS }),
				c.picture("99% Line", "%.0f ms", func(p Point) float64 { return p.P99MS }),
			},
		}
		if n := c.broken(); n > 0 {
			all[i].Broken = fmt.Sprintf("Updates were lost in %d of %s.", n, count(len(c.Points), "run", "runs"))
		}
	}
	return all
}

// broken is how many runs broke an invariant.
func (c Curve) broken() (n int) {
	for _, p := range c.Points {
		if p.Verdict == check.Broken {
			n++
		}
	}
	return n
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
