package report

import (
	"fmt"
	"io"
	"strings"

	"oversell/api"
	"oversell/lab/measure"
	"oversell/view/terminal"
)

// Sweep writes a verdict and a table for each curve. The verdicts name the knee and the peak.
func Sweep(w io.Writer, curves []measure.Curve, screen terminal.Screen, lang string) {
	for _, c := range curves {
		line := fmt.Sprintf("%s %s  %s", c.Verdict().Sign(), c.Strategy, curveHeadline(c).In(lang))
		fmt.Fprintln(w, screen.Paint(c.Verdict().Sign(), screen.Wrap(line, len("s ")))+"\n")
		for _, warning := range c.Points[0].Warnings {
			fmt.Fprintln(w, screen.Wrap("  warning: "+measure.Shorten(warning), len("  ")))
		}
		curveTable(c).Write(w, screen)
		fmt.Fprintln(w)
	}
}

func curveHeadline(c measure.Curve) api.Text {
	broken, cause := 0, api.Text{}
	for _, p := range c.Points {
		if p.Verdict == api.Inconclusive && cause.EN == "" {
			cause = Headline(p.Result)
		}
		if p.Verdict == api.Broken {
			broken++
		}
	}
	lost := api.Text{EN: "no update lost", ZH: "没有丢失更新"}
	switch {
	case broken > 0:
		lost = api.Textf("updates lost in %d of %d runs", "%[2]d 次运行中有 %[1]d 次丢失更新", broken, len(c.Points))
	case c.Verdict() == api.Inconclusive:
		lost = cause
	}
	peak, last := c.Points[c.Peak()], c.Points[len(c.Points)-1].Clients
	knee := api.Textf("no knee up to %[2]s", "到 %[1]d 个客户端为止没有拐点", last, measure.Count(last, "client", "clients"))
	if c.Knee != nil {
		knee = api.Textf("knee at %[3]s (%[2]s/s)", "拐点在 %[1]d 个客户端（每秒 %[2]s）",
			c.Knee.Clients, terminal.Number(int(c.Knee.ThroughputPerS+0.5)), measure.Count(c.Knee.Clients, "client", "clients"))
	}
	top := api.Textf("peak at %[1]d (%[2]s/s)", "峰值在 %[1]d 个（每秒 %[2]s）", peak.Clients, terminal.Number(int(peak.Rate()+0.5)))
	return api.Textf("%[1]s; %[3]s, %[5]s", "%[2]s；%[4]s，%[6]s", lost.EN, lost.ZH, knee.EN, knee.ZH, top.EN, top.ZH)
}

func curveTable(c measure.Curve) terminal.Table {
	table := terminal.Table{Caption: "The figures", Columns: []terminal.Column{
		{Head: "clients", Right: true},
		{Head: "req/s", Right: true},
		{Head: "p50 ms", Right: true, Drop: 3},
		{Head: "p99 ms", Right: true, Drop: 1},
		{Head: "retries/sale", Right: true, Drop: 2},
		{Head: "errors", Right: true, Drop: 4},
		{Head: "lost", Right: true},
		{Head: ""},
	}}
	for i, p := range c.Points {
		var marks []string
		if c.Knee != nil && c.Knee.Clients == p.Clients {
			marks = append(marks, "knee")
		}
		if i == c.Peak() && len(c.Points) > 1 {
			marks = append(marks, "peak")
		}
		if p.Partial {
			marks = append(marks, "partial")
		}
		table.Rows = append(table.Rows, []terminal.Cell{
			{Text: terminal.Number(p.Clients)},
			{Text: measured(p.Result, p.ThroughputPerS)},
			{Text: measured(p.Result, p.P50MS)},
			{Text: measured(p.Result, p.P99MS)},
			{Text: measured(p.Result, p.RetriesPerSale)},
			{Text: terminal.Number(p.Errors), Sign: signIf(p.Errors > 0, terminal.Costly)},
			{Text: lost(p.Result, terminal.Number), Sign: signIf(p.Verdict != api.Holds, p.Verdict.Sign())},
			{Text: strings.Join(marks, ", ")},
		})
	}
	return table
}
