package measure

import (
	"slices"

	"oversell/api"
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
		perSale := Ratio(float64(r.Retries), float64(r.Samples-r.SoldOut-r.Errors))
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
		clients := Ratio(float64(next.Clients), float64(here.Clients)) - 1
		throughput := Ratio(next.ThroughputPerS, here.ThroughputPerS) - 1
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
			"%[1]s：到 %[2]d 个客户端为止没有拐点：吞吐量的增幅始终不低于客户端增幅的一半。", c.Strategy, last, Count(last, "client", "clients"))
	}
	return api.Textf("%[1]s: the knee is at %[4]s and %.1[3]f/s, %[5]s.",
		"%[1]s：拐点在 %[2]d 个客户端、每秒 %.1[3]f 个请求处：此后吞吐量的增幅不到客户端增幅的一半。",
		c.Strategy, c.Knee.Clients, c.Knee.ThroughputPerS, Count(c.Knee.Clients, "client", "clients"), c.Knee.Rule)
}

// Verdict returns the worst verdict of all points.
func (c Curve) Verdict() api.Verdict {
	worst := api.Holds
	for _, p := range c.Points {
		if p.Verdict == api.Broken || p.Verdict == api.Inconclusive && worst == api.Holds {
			worst = p.Verdict
		}
	}
	return worst
}

// Peak returns the position of the point with the highest throughput.
func (c Curve) Peak() int {
	at := 0
	for i, p := range c.Points {
		if p.ThroughputPerS > c.Points[at].ThroughputPerS {
			at = i
		}
	}
	return at
}
