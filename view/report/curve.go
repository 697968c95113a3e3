package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"oversell/api"
	"oversell/lab/measure"
	"oversell/view/terminal"
)

// bend has the curves of a sweep, with the clients on a logarithmic scale.
type bend struct {
	Label    string
	Says     api.Text
	Class    string // holds, broken or inconclusive
	Pictures []curve
	Table    terminal.Table
}

// curve is a line, and an area below it or another line, in a box of 100 x 100.
type curve struct {
	Title, Says      string // Says is for a screen reader
	Top, First, Last string // at the ends of the axes
	Line, Area       string
	KneeX            string // in per cent; empty without a knee
}

func bends(curves []measure.Curve) []bend {
	all := make([]bend, len(curves))
	for i, c := range curves {
		all[i] = bend{
			Label: c.Strategy, Says: curveHeadline(c), Class: string(c.Verdict()), Table: curveTable(c),
			Pictures: []curve{
				curveOf(c, "Throughput", "%.0f/s", func(p measure.Point) float64 { return p.Rate() }),
				curveOf(c, "99% Line", "%.0f ms", func(p measure.Point) float64 { return p.P99MS }),
			},
		}
	}
	return all
}

func curveOf(c measure.Curve, title, format string, of func(measure.Point) float64) curve {
	top := 0.0
	for _, p := range c.Points {
		top = max(top, of(p))
	}
	first, last := c.Points[0].Clients, c.Points[len(c.Points)-1].Clients
	at := func(clients int) float64 {
		return 100 * measure.Ratio(math.Log(float64(clients)/float64(first)), math.Log(float64(last)/float64(first)))
	}
	points := make([]string, len(c.Points))
	for i, p := range c.Points {
		points[i] = fmt.Sprintf("%.2f,%.2f", at(p.Clients), 100-100*measure.Ratio(of(p), top))
	}
	path := strings.Join(points, " L")
	drawn := curve{
		Title: title, Says: title + " over the clients, at most " + fmt.Sprintf(format, top) + "; the table below has its figures",
		Top: fmt.Sprintf(format, top), First: strconv.Itoa(first), Last: strconv.Itoa(last),
		Line: "M" + path, Area: "M0,100 L" + path + " L" + fmt.Sprintf("%.2f", at(last)) + ",100 Z",
	}
	if c.Knee != nil {
		drawn.KneeX = fmt.Sprintf("%.2f", at(c.Knee.Clients))
	}
	return drawn
}
