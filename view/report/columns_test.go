package report_test

import (
	"strings"
	"testing"

	"oversell/lab/measure"
	"oversell/view/report"
)

// TestPageCells checks that the page shows what the other tables show, in both languages, and sorts it by the figure.
func TestPageCells(t *testing.T) {
	t.Parallel()
	left := 8
	sold := measure.Result{
		Strategy: "zk", Partial: true, Verdict: "inconclusive", Samples: 1200, Sold: 1000, Remaining: &left, LostUpdatesMax: 2,
		ThroughputPerS: 206.23, P50MS: 12.04, P99MS: 14, Errors: 3, Fairness: 0.5, Clients: 10, Loops: 120, HoldMS: 40, LeaseMS: 1500,
	}
	failed := measure.Result{Strategy: "zk", Verdict: "inconclusive", Samples: 10, Errors: 10, P50MS: 7, Clients: 10, Loops: 1}
	failed.Failures = []measure.Reason{{Reason: "unavailable", Count: 10}}
	for _, test := range []struct {
		result        measure.Result
		texts, orders string
	}{
		{
			sold, "zk (partial)|inconclusive|0 to 2|206.2|12.0|14.0|1000|8|3||0.50|10 × 120, hold 40 ms, lease 1500 ms",
			"zk (partial)|inconclusive|0|206.2|12.0|14.0|1000|8|3|0|0.50|10",
		},
		{failed, "zk|inconclusive|?|-|-|-|0|?|10|||10 × 1", "zk|inconclusive|0|0|0|0|0|0|10|0|0.00|10"},
	} {
		var texts, orders []string
		for _, c := range report.PageColumns() {
			text, order := c.PageCell(test.result)
			texts, orders = append(texts, text.EN), append(orders, order)
			if c.Name.EN == "" || c.Name.ZH == "" || (text.ZH == "") != (text.EN == "") {
				t.Errorf("%s is not in both languages: %+v, %+v", c.ID, c.Name, text)
			}
		}
		if got := strings.Join(texts, "|"); got != test.texts {
			t.Errorf("got  %s\nwant %s", got, test.texts)
		}
		if got := strings.Join(orders, "|"); got != test.orders {
			t.Errorf("sorted by %s\nwant      %s", got, test.orders)
		}
	}
}
