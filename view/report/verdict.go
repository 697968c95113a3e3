package report

import (
	"fmt"
	"io"
	"strings"

	"oversell/api"
	"oversell/lab/measure"
	"oversell/view/terminal"
)

// Lesson writes verdicts for a terminal, one line for each result.
type Lesson struct {
	Names  int // the width of the longest strategy's name; 0 aligns nothing
	Screen terminal.Screen
	Lang   string // en or zh
}

// Write writes the verdict of a result, and below it what a reader must know besides.
func (l Lesson) Write(w io.Writer, r measure.Result) {
	indent := len("s ") + max(l.Names, len(r.Strategy)) + len("  ") // s is the sign
	line := fmt.Sprintf("%s %-*s  %s", r.Verdict.Sign(), l.Names, r.Strategy, Headline(r).In(l.Lang))
	fmt.Fprintln(w, l.Screen.Paint(r.Verdict.Sign(), l.Screen.Wrap(line, indent)))
	for _, note := range measure.Notes(r) {
		l.below(w, indent, note.In(l.Lang))
	}
	for _, warning := range r.Warnings {
		l.below(w, indent, api.Text{EN: "warning: ", ZH: "警告："}.In(l.Lang)+measure.Shorten(warning))
	}
}

func (l Lesson) below(w io.Writer, indent int, note string) {
	fmt.Fprintln(w, l.Screen.Wrap(strings.Repeat(" ", indent)+note, indent))
}

// Headline returns the verdict in a few words, such as "4,901 of 5,000 updates lost".
func Headline(r measure.Result) api.Text {
	switch {
	case r.Flushes > 0:
		return api.Textf("inconclusive: the locks were deleted during the run", "无法判定：测试期间锁被删掉了")
	case r.Verdict == api.Inconclusive && r.Cause.EN != "":
		return api.Textf("inconclusive: %[1]s", "无法判定：%[2]s", r.Cause.EN, r.Cause.ZH)
	case r.Remaining == nil:
		return api.Textf("inconclusive: the stock could not be read after the run", "无法判定：测试之后无法读取库存")
	case r.Verdict == api.Inconclusive:
		return api.Textf("inconclusive: %[3]s missing, so up to %[4]s may be lost", "无法判定：%[1]s 个应答没有收到，最多可能丢失 %[2]s 次更新",
			terminal.Number(r.Unknown), terminal.Number(r.LostUpdatesMax), countOf(r.Unknown, "answer is", "answers are"), countOf(r.LostUpdatesMax, "update", "updates"))
	case r.Verdict == api.Holds && r.Alone:
		return api.Textf("no update lost, as its card says for one replica", "没有丢失更新，与它的卡片一致：只有一个副本")
	case r.Verdict == api.Holds:
		return api.Textf("no update lost", "没有丢失更新")
	}
	return brokenHeadline(r)
}

func brokenHeadline(r measure.Result) api.Text {
	sold, stock := terminal.Number(r.Sold), terminal.Number(r.Stock)
	atLeast := api.Text{}
	if r.Unknown > 0 {
		atLeast = api.Text{EN: "at least ", ZH: "至少"}
	}
	lost := api.Textf("%[3]s%[1]s of %[2]s updates lost", "%[4]s丢失 %[1]s 次更新，共售出 %[2]s 次",
		terminal.Number(r.LostUpdates), sold, atLeast.EN, atLeast.ZH)
	if r.Qty > 1 {
		lost = api.Textf("%[3]s%[1]s of %[2]s pieces sold, but still in stock", "%[4]s有 %[1]s 件售出后仍在库存里，共售出 %[2]s 件",
			terminal.Number(r.LostUpdates), sold, atLeast.EN, atLeast.ZH)
	}
	switch {
	case r.LostUpdates > 0 && r.Oversold > 0:
		over := api.Textf(": sold %[1]s, had %[2]s", "：库存只有 %[2]s 件", sold, stock)
		return api.Text{EN: lost.EN + over.EN, ZH: lost.ZH + over.ZH}
	case r.LostUpdates > 0:
		return lost
	case r.Oversold > 0:
		return api.Textf("%s sold, but there were only %s", "售出 %s 件，可库存只有 %s 件", sold, stock)
	case *r.Remaining < 0:
		return api.Textf("the stock fell to %d: more was taken than there was", "库存变成了 %d：取走的比原有的还多", *r.Remaining)
	default:
		return api.Textf("%[2]s gone without a sale", "有 %[1]s 件没有卖出就不见了",
			terminal.Number(-r.LostUpdates), countOf(-r.LostUpdates, "piece is", "pieces are"))
	}
}

// countOf is count with commas.
func countOf(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return terminal.Number(n) + " " + many
}
