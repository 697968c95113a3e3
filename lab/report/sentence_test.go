package report_test

import (
	"strings"
	"testing"
	"time"

	"oversell/lab/history"
	"oversell/lab/report"
)

// told summarises a run of so many sold, sold-out and unknown requests.
func told(safe bool, stock int, remaining *int, sold, soldOut, unknown int, others ...history.Op) report.Sentence {
	var ops []history.Op
	add := func(n int, op history.Op) {
		for range n {
			op.Client, op.Qty = len(ops)+1, 1
			op.Return = time.Millisecond
			ops = append(ops, op)
		}
	}
	add(sold, history.Op{Outcome: history.OK, Reason: history.Sold})
	add(soldOut, history.Op{Outcome: history.Refused, Reason: history.SoldOut})
	add(unknown, history.Op{Outcome: history.Unknown, Reason: history.TimedOut})
	for _, op := range others {
		add(1, op)
	}
	h := history.History{Strategy: "redis", Clients: len(ops), Loops: 1, Ops: ops}
	return report.Summarise(h, report.Setup{Safe: safe, Stock: stock, Remaining: remaining}).Sentence
}

func left(n int) *int { return &n }

func TestSentences(t *testing.T) {
	const broken = " Its card claims that this cannot happen: the claim is broken."
	const lucky = " Its card promises nothing: this time it went well."
	tests := []struct {
		name string
		got  report.Sentence
		want string
		zh   string // a part of it
	}{
		{"all well", told(true, 5, left(0), 5, 0, 0), "5 sold, 0 left, no update lost.", "没有丢失更新"},
		{"luck", told(false, 5, left(0), 5, 0, 0), "5 sold, 0 left, no update lost." + lucky, "运气"},
		{"nothing sold is no luck", told(false, 0, left(0), 0, 3, 0), `0 sold, 0 left, no update lost. 3 requests came too late and heard "sold out".`, "已售完"},
		{"sold out", told(true, 2, left(0), 2, 1, 0), `2 sold, 0 left, no update lost. 1 request came too late and heard "sold out".`, "1 个请求来晚了"},
		{
			"the classic", told(false, 5, left(4), 5, 0, 0),
			"5 sold, but 4 are still on the shelf: 4 updates were lost, so 4 pieces could be sold twice.", "丢失了 4 次更新",
		},
		{
			"one of each", told(false, 5, left(1), 5, 0, 0),
			"5 sold, but 1 is still on the shelf: 1 update was lost, so 1 piece could be sold twice.", "还剩 1 件",
		},
		{
			"stock left over anyway", told(false, 9, left(6), 5, 0, 0),
			"5 of 9 sold, so 4 should be left, but 6 are: 2 updates were lost, so 2 pieces could be sold twice.", "应剩 4 件，实际却剩 6 件",
		},
		{
			"a safe one breaks its word", told(true, 5, left(4), 5, 0, 0),
			"5 sold, but 4 are still on the shelf: 4 updates were lost, so 4 pieces could be sold twice." + broken, "承诺被打破",
		},
		{
			"an oversell that 0 hides", told(false, 5, left(0), 7, 0, 0),
			"7 sold, though there were only 5: 2 customers will get nothing. The shelf says 0, which hides it. 2 updates were lost.", "掩盖了超卖",
		},
		{
			"an oversell with some left", told(false, 5, left(3), 6, 0, 0),
			"6 sold, though there were only 5: 1 customer will get nothing. Yet 3 are still on the shelf. 4 updates were lost.", "竟还剩 3 件",
		},
		{
			"below zero", told(false, 5, left(-1), 6, 0, 0),
			"6 sold, though there were only 5: 1 customer will get nothing. The count fell to -1.", "变成了 -1",
		},
		{
			"vanished", told(false, 5, left(1), 3, 0, 0),
			"3 sold of 5, but 1 left: 1 piece is gone that nobody bought.", "没有卖出就不见了",
		},
		{
			"unknown and undecided", told(true, 9, left(6), 2, 0, 2),
			"2 sold for certain, 6 left; 2 answers never came, so up to 1 update may have been lost, and nobody can tell. " +
				"2 requests failed: 2 got no answer in time.", "无法判定",
		},
		{
			"unknown, but they sold", told(true, 9, left(5), 3, 0, 1),
			"3 sold, 5 left, no update lost. (1 answer is missing, but the shelf shows that these sold too.) 1 request failed: 1 got no answer in time.",
			"它们也都售出了",
		},
		{
			"unknown, and lost all the same", told(false, 9, left(8), 3, 0, 1),
			"3 of 9 sold, so 6 should be left, but 8 are: at least 2 updates were lost, so 2 pieces could be sold twice. " +
				"1 request failed: 1 got no answer in time.", "至少丢失了 2 次更新",
		},
		{
			"unknown below zero", told(true, 3, left(-1), 3, 0, 1),
			"3 sold for certain, and the count fell to -1: more was taken than there was. 1 request failed: 1 got no answer in time." + broken,
			"取走的比原有的还多",
		},
		{
			"stock not readable", told(true, 5, nil, 2, 0, 0),
			"2 sold for certain, but the stock could not be read afterwards: whether an update was lost, nobody knows.", "无法读取库存",
		},
		{
			"a backend is down",
			told(true, 5, left(5), 0, 0, 0, history.Op{Outcome: history.Refused, Reason: history.Unavailable, Backend: "redis", Detail: "dial tcp:\n connection refused"}),
			"0 sold, 5 left, no update lost. 1 request failed: 1 found redis unavailable (dial tcp: connection refused).", "redis 不可用",
		},
	}
	for _, tt := range tests {
		if tt.got.EN != "redis: "+tt.want {
			t.Errorf("%s:\n got %s\nwant redis: %s", tt.name, tt.got.EN, tt.want)
		}
		if !strings.HasPrefix(tt.got.ZH, "redis：") || !strings.Contains(tt.got.ZH, tt.zh) {
			t.Errorf("%s: %s lacks %s", tt.name, tt.got.ZH, tt.zh)
		}
	}
}

func TestSentenceNamesThreeReasonsAtMost(t *testing.T) {
	var others []history.Op
	for _, reason := range []string{
		history.NotAcquired, history.Unreachable, history.Broken, history.Interrupted, history.NotUnderstood, "lost", history.Unavailable,
	} {
		others = append(others, history.Op{Outcome: history.Refused, Reason: reason, Detail: strings.Repeat("x", 300)})
	}
	got := told(true, 5, left(5), 0, 0, 0, others...)
	if n := strings.Count(got.EN, ";"); n != 3 || !strings.Contains(got.EN, "; and more.") {
		t.Errorf("%s", got.EN)
	}
	if strings.Contains(got.EN, strings.Repeat("x", 161)) || strings.Count(got.EN, "(") != 1 {
		t.Errorf("too much of what servers say: %s", got.EN)
	}
	if !strings.Contains(got.ZH, "等等") {
		t.Errorf("%s", got.ZH)
	}
}
