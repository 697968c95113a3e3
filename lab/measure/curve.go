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
		throughput := Ratio(next.Rate(), here.Rate()) - 1
		if throughput < clients/2 {
			return &Knee{here.Clients, here.Rate(), kneeRule}
		}
	}
	return nil
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
		if p.Rate() > c.Points[at].Rate() {
			at = i
		}
	}
	return at
}
