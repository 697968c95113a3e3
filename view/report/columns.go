package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"oversell/api"
	"oversell/lab/measure"
	"oversell/view/terminal"
)

// Column is a column of the tables of results. Terminal, report and page show columns of one list: see columns.
type Column struct {
	ID    string   // by which shortTable and pageTable choose it; empty: neither has it
	Name  api.Text // in these tables, with the unit
	Short string   // replaces Name in 80 columns
	// JMeter is the name in JMeter's aggregate report, or one in its style if JMeter lacks the column. Without it, the
	// column is not in the table of JMeter's columns.
	JMeter string
	Unit   string // behind each figure in that table
	Digits int    // of a figure, after its point
	Drop   int    // see terminal.Column
	Stock  bool   // JMeter cannot measure it
	Open   bool   // only an open loop has it
	Speed  bool   // requests that failed are no measurement of it
	// Value returns the figure. ok is false if there is none, and the cell has the text None.
	Value func(measure.Result) (figure float64, ok bool)
	None  string
	// Text replaces Value where a cell has words. number writes the figures in them.
	Text func(r measure.Result, number func(int) string) api.Text
	// Signal returns the sign in whose colour the cell is. It may be nil, and return "".
	Signal func(measure.Result) string
}

// These tables do not show all columns, or in another order than columns. JMeter's has all that have a name there.
const (
	shortTable = "strategy requests errors rate p50 p99 sold left lost"
	pageTable  = "strategy verdict lost rate p50 p99 sold left errors retries fairness load"
)

// PageColumns returns the columns of the page, in their order.
func PageColumns() []Column { return choose(pageTable) }

func choose(ids string) (chosen []Column) {
	all := columns()
	for id := range strings.FieldsSeq(ids) {
		chosen = append(chosen, all[slices.IndexFunc(all, func(c Column) bool { return c.ID == id })])
	}
	return chosen
}

// jmeterColumns returns the columns of JMeter's aggregate report in its order, and those that JMeter cannot measure.
func jmeterColumns(results []measure.Result) []Column {
	open := anyOpen(results)
	return slices.DeleteFunc(columns(), func(c Column) bool { return c.JMeter == "" || c.Open && !open })
}

func anyOpen(results []measure.Result) bool {
	return slices.ContainsFunc(results, func(r measure.Result) bool { return r.Open != nil })
}

// columns returns the list of all columns. A new one also stands in shortTable or pageTable, if these are to show it.
func columns() []Column { return slices.Concat(requestColumns(), openColumns(), stockColumns()) }

func requestColumns() []Column {
	return []Column{
		{ID: "strategy", Name: bilingual("strategy", "策略"), JMeter: "Label", Text: func(r measure.Result, _ func(int) string) api.Text {
			return api.Verbatim(label(r))
		}},
		{ID: "verdict", Name: bilingual("verdict", "判定"), Text: func(r measure.Result, _ func(int) string) api.Text {
			return bilingual(r.Verdict.In("en"), r.Verdict.In("zh"))
		}},
		{
			ID: "requests", Name: bilingual("requests", "请求"), JMeter: "# Samples", Drop: 3,
			Value: count(func(r measure.Result) int { return r.Samples }),
		},
		speed(Column{JMeter: "Average"}, func(r measure.Result) float64 { return r.MeanMS }),
		speed(Column{ID: "p50", Name: api.Verbatim("p50 ms"), JMeter: "Median", Drop: 4}, func(r measure.Result) float64 { return r.P50MS }),
		speed(Column{JMeter: "90% Line"}, func(r measure.Result) float64 { return r.P90MS }),
		speed(Column{JMeter: "95% Line"}, func(r measure.Result) float64 { return r.P95MS }),
		speed(Column{ID: "p99", Name: api.Verbatim("p99 ms"), JMeter: "99% Line", Drop: 1}, func(r measure.Result) float64 { return r.P99MS }),
		speed(Column{JMeter: "Min"}, func(r measure.Result) float64 { return r.MinMS }),
		speed(Column{JMeter: "Maximum"}, func(r measure.Result) float64 { return r.MaxMS }),
		{
			ID: "errors", Name: bilingual("errors", "错误"), Drop: 5, Value: count(func(r measure.Result) int { return r.Errors }),
			Signal: func(r measure.Result) string { return signIf(r.Errors > 0, terminal.Costly) },
		},
		{JMeter: "Error %", Unit: "%", Digits: 2, None: "-", Value: sampled(func(r measure.Result) float64 { return r.ErrorPct })},
		speed(Column{ID: "rate", Name: bilingual("requests/s", "请求/秒"), Short: "req/s", JMeter: "Throughput", Unit: "/sec"},
			func(r measure.Result) float64 { return r.ThroughputPerS }),
		{JMeter: "Received KB/sec", Digits: 2, None: "-", Value: sampled(func(r measure.Result) float64 { return r.ReceivedKBPerS })},
		{JMeter: "Sent KB/sec", Digits: 2, None: "-", Value: sampled(func(r measure.Result) float64 { return r.SentKBPerS })},
	}
}

// openColumns has the columns of an open loop. Other results have no figures in them.
func openColumns() []Column {
	of := func(get func(*measure.Open) float64) func(measure.Result) (float64, bool) {
		return func(r measure.Result) (float64, bool) {
			if r.Open == nil {
				return 0, false
			}
			return get(r.Open), r.Samples > 0
		}
	}
	all := []Column{
		{JMeter: "Rate due", Unit: "/sec", Value: of(func(o *measure.Open) float64 { return o.DuePerS })},
		{
			JMeter: "Rate sent", Unit: "/sec", Value: of(func(o *measure.Open) float64 { return o.SentPerS }),
			Signal: func(r measure.Result) string { return signIf(r.Open != nil && !r.Open.Reached, terminal.Bad) },
		},
		{JMeter: "Median sent", Value: of(func(o *measure.Open) float64 { return o.FromSent.P50 })},
		{JMeter: "99% sent", Value: of(func(o *measure.Open) float64 { return o.FromSent.P99 })},
	}
	for i := range all {
		all[i].Digits, all[i].None, all[i].Open, all[i].Stock = 1, "-", true, true
	}
	return all
}

// stockColumns returns the columns about the stock, such as the lost updates. JMeter knows nothing of the stock.
func stockColumns() []Column {
	return []Column{
		{ID: "sold", Name: bilingual("sold", "已售"), JMeter: "Sold", Stock: true, Value: count(func(r measure.Result) int { return r.Sold })},
		{
			ID: "left", Name: bilingual("left", "剩余"), JMeter: "Remaining", Stock: true, Drop: 2, None: "?",
			Value: func(r measure.Result) (float64, bool) {
				if r.Remaining == nil {
					return 0, false
				}
				return float64(*r.Remaining), true
			},
		},
		{
			ID: "lost", Name: bilingual("lost updates", "丢失更新"), Short: "lost", JMeter: "Lost updates", Stock: true,
			Value:  count(func(r measure.Result) int { return r.LostUpdates }),
			Text:   func(r measure.Result, number func(int) string) api.Text { return api.Verbatim(lost(r, number)) },
			Signal: func(r measure.Result) string { return signIf(r.Verdict != api.Holds, r.Verdict.Sign()) },
		},
		// These two are empty if no request tried again, or if each client had one loop.
		{
			ID: "retries", Name: bilingual("retries", "重试"), JMeter: "Retries", Stock: true,
			Value: unlessZero(func(r measure.Result) float64 { return float64(r.Retries) }),
		},
		{
			ID: "fairness", Name: bilingual("fairness", "公平"), JMeter: "Fairness", Stock: true, Digits: 2,
			Value: unlessZero(func(r measure.Result) float64 { return r.Fairness }),
		},
		{
			ID: "load", Name: bilingual("load", "负载"), Value: count(func(r measure.Result) int { return r.Clients }),
			Text: func(r measure.Result, _ func(int) string) api.Text { return loadOf(r) },
		},
	}
}

func bilingual(en, zh string) api.Text { return api.Text{EN: en, ZH: zh} }

func count(of func(measure.Result) int) func(measure.Result) (float64, bool) {
	return func(r measure.Result) (float64, bool) { return float64(of(r)), true }
}

func sampled(of func(measure.Result) float64) func(measure.Result) (float64, bool) {
	return func(r measure.Result) (float64, bool) { return of(r), r.Samples > 0 }
}

func unlessZero(of func(measure.Result) float64) func(measure.Result) (float64, bool) {
	return func(r measure.Result) (float64, bool) { return of(r), of(r) != 0 }
}

// speed completes the column of a time or a rate.
func speed(c Column, of func(measure.Result) float64) Column {
	c.Digits, c.Speed, c.None, c.Value = 1, true, "-", sampled(of)
	return c
}

func signIf(alarm bool, sign string) string {
	if !alarm {
		return ""
	}
	return sign
}

// short writes the cell of the short table: with commas, and with a decimal only below 10.
func (c Column) short(r measure.Result) string {
	if c.Text != nil {
		return c.Text(r, terminal.Number).EN
	}
	figure, ok := c.Value(r)
	switch {
	case !ok:
		return c.None
	case c.Speed:
		return measured(r, figure)
	}
	return terminal.Number(int(figure))
}

// exact writes the cell with all its digits.
func (c Column) exact(r measure.Result) api.Text {
	if c.Text != nil {
		return c.Text(r, strconv.Itoa)
	}
	figure, ok := c.Value(r)
	if !ok {
		return api.Verbatim(c.None)
	}
	return api.Verbatim(strconv.FormatFloat(figure, 'f', c.Digits, 64))
}

// jmeter writes the cell of the table with JMeter's columns.
func (c Column) jmeter(r measure.Result) string {
	figure := c.exact(r).EN
	switch {
	case c.ID == "lost":
		return lostUpdates(r)
	case figure == c.None:
		return figure
	}
	return figure + c.Unit
}

// PageCell returns the text of a cell on the page, and the value by which the table is sorted.
func (c Column) PageCell(r measure.Result) (text api.Text, order string) {
	if c.Value == nil {
		text = c.exact(r)
		return text, text.EN
	}
	figure, _ := c.Value(r)
	order = strconv.FormatFloat(figure, 'f', c.Digits, 64)
	if c.Speed && r.ErrorsOnly() {
		return api.Verbatim(c.None), "0"
	}
	return c.exact(r), order
}

func (c Column) head() string { return cmp.Or(c.Short, c.Name.EN) }

func label(r measure.Result) string {
	if r.Partial {
		return r.Strategy + " (partial)"
	}
	return r.Strategy
}

// measured writes a figure with a decimal only if it is below 10. The figures of errors are no measurement.
func measured(r measure.Result, value float64) string {
	switch {
	case r.Samples == 0, r.ErrorsOnly():
		return "-"
	case value < 9.95:
		return fmt.Sprintf("%.1f", value)
	default:
		return terminal.Number(int(value + 0.5))
	}
}

func lost(r measure.Result, number func(int) string) string {
	switch {
	case r.LostUpdates != 0:
		return number(r.LostUpdates)
	case r.Remaining == nil:
		return "?"
	case r.LostUpdatesMax > 0:
		return "0 to " + number(r.LostUpdatesMax)
	default:
		return "0"
	}
}

// lostUpdates adds a word to a number other than 0, for readers who see no colours.
func lostUpdates(r measure.Result) string {
	text := lost(r, strconv.Itoa)
	switch {
	case r.LostUpdates > 0:
		text += " LOST"
	case r.LostUpdates < 0:
		text += " GONE"
	case r.Remaining != nil && r.LostUpdatesMax > 0:
		text += "?"
	}
	return text
}

// loadOf says what the clients of a run did, such as "100 × 50, hold 5 ms".
func loadOf(r measure.Result) api.Text {
	load := api.Verbatim(fmt.Sprintf("%d × %d", r.Clients, r.Loops))
	add := func(en, zh string, ms float64) {
		if ms != 0 {
			load.EN, load.ZH = fmt.Sprintf("%s, %s %v ms", load.EN, en, ms), fmt.Sprintf("%s, %s %v ms", load.ZH, zh, ms)
		}
	}
	add("hold", "持锁", float64(r.HoldMS))
	add("lease", "租期", float64(r.LeaseMS))
	return load
}
