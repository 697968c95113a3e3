package measure_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"oversell/api"
	"oversell/lab/history"
	"oversell/lab/load"
	"oversell/lab/measure"
)

// sentenceOf returns the sentence of a run with these numbers of sold, sold-out and unknown
// requests.
func sentenceOf(safe bool, stock int, remaining *int, sold, soldOut, unknown int, others ...history.Op) api.Text {
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
	return measure.Summarise(h, measure.Setup{Safe: safe, Stock: stock, Remaining: remaining}).Sentence
}

func left(n int) *int { return &n }

func TestSentences(t *testing.T) {
	const contradicts = " Its card claims that it loses no update: this run contradicts the card."
	const lucky = " Its card does not claim that it is safe: this run was lucky."
	tests := []struct {
		name string
		got  api.Text
		want string
		zh   string // a part of it
	}{
		{"no error", sentenceOf(true, 5, left(0), 5, 0, 0), "5 sold, 0 left, no update lost.", "没有丢失更新"},
		{"luck", sentenceOf(false, 5, left(0), 5, 0, 0), "5 sold, 0 left, no update lost." + lucky, "运气"},
		{"nothing sold is no luck", sentenceOf(false, 0, left(0), 0, 3, 0), `0 sold, 0 left: inconclusive, because too little was sold. Nothing to sell: the stock was 0. 3 requests were answered "sold out".`, "已售完"},
		{"sold out", sentenceOf(true, 2, left(0), 2, 1, 0), `2 sold, 0 left, no update lost. 1 request was answered "sold out".`, "1 个请求得到“已售完”"},
		{
			"the classic", sentenceOf(false, 5, left(4), 5, 0, 0),
			"5 sold, but the stock fell by 1, from 5 to 4: 4 updates were lost, so 4 pieces could be sold twice.", "丢失了 4 次更新",
		},
		{
			"one of each", sentenceOf(false, 5, left(1), 5, 0, 0),
			"5 sold, but the stock fell by 4, from 5 to 1: 1 update was lost, so 1 piece could be sold twice.", "从 5 到 1",
		},
		{
			"stock left over anyway", sentenceOf(false, 9, left(6), 5, 0, 0),
			"5 sold, but the stock fell by 3, from 9 to 6: 2 updates were lost, so 2 pieces could be sold twice.", "减少了 3 件（从 9 到 6）",
		},
		{
			"a strategy that claims to be safe", sentenceOf(true, 5, left(4), 5, 0, 0),
			"5 sold, but the stock fell by 1, from 5 to 4: 4 updates were lost, so 4 pieces could be sold twice." + contradicts, "与卡片不符",
		},
		{
			"an oversell that 0 hides", sentenceOf(false, 5, left(0), 7, 0, 0),
			"7 sold, but there were only 5: 2 customers will get nothing. The stock is now 0, which hides the oversell. 2 updates were lost.", "掩盖了超卖",
		},
		{
			"an oversell with some left", sentenceOf(false, 5, left(3), 6, 0, 0),
			"6 sold, but there were only 5: 1 customer will get nothing. The stock is now 3. 4 updates were lost.", "库存为 3",
		},
		{
			"below zero", sentenceOf(false, 5, left(-1), 6, 0, 0),
			"6 sold, but there were only 5: 1 customer will get nothing. The stock is now -1.", "库存为 -1",
		},
		{
			"vanished", sentenceOf(false, 5, left(1), 3, 0, 0),
			"3 sold, but the stock fell by 4, from 5 to 1: 1 piece is gone without a sale.", "没有卖出就不见了",
		},
		{
			"unknown and inconclusive", sentenceOf(true, 9, left(6), 2, 0, 2),
			"2 sold for certain, 6 left; 2 answers never came, so up to 1 update may have been lost: inconclusive. " +
				"2 requests failed: 2 got no answer in time.", "无法判定",
		},
		{
			"unknown, but they sold", sentenceOf(true, 9, left(5), 3, 0, 1),
			"3 sold, 5 left, no update lost. (1 answer is missing, but the stock shows that these requests sold, too.) 1 request failed: 1 got no answer in time.",
			"它们也都售出了",
		},
		{
			"unknown, and lost all the same", sentenceOf(false, 9, left(8), 3, 0, 1),
			"3 sold, but the stock fell by 1, from 9 to 8: at least 2 updates were lost, so 2 pieces could be sold twice. " +
				"1 request failed: 1 got no answer in time.", "至少丢失了 2 次更新",
		},
		{
			"unknown below zero", sentenceOf(true, 3, left(-1), 3, 0, 1),
			"3 sold for certain, and the stock fell to -1: more was taken than there was. 1 request failed: 1 got no answer in time." + contradicts,
			"取走的比原有的还多",
		},
		{
			"stock not readable", sentenceOf(true, 5, nil, 2, 0, 0),
			"2 sold for certain, but the stock could not be read afterwards: inconclusive.", "无法读取库存",
		},
		{
			"a backend is down",
			sentenceOf(true, 5, left(5), 0, 0, 0, history.Op{Outcome: history.Refused, Reason: history.Unavailable, Backend: "redis", Detail: "dial tcp:\n connection refused"}),
			"0 sold, 5 left: inconclusive, because too little was sold. Redis is unavailable: 1 of 1 requests. " +
				"1 request failed: 1 failed because redis was unavailable (dial tcp: connection refused).", "redis 不可用：1 个请求中的 1 个",
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

// TestTooLittleSold checks that a run proves nothing if less than half of what could be sold was sold, and that its
// throughput is then no speed. A lost update counts however little was sold.
func TestTooLittleSold(t *testing.T) {
	type ops = []history.Op
	sold := history.Op{Outcome: history.OK, Reason: history.Sold}
	down := history.Op{Outcome: history.Refused, Reason: history.Unavailable, Backend: "redis"}
	late := history.Op{Outcome: history.Refused, Reason: history.NotAcquired}
	conflict := history.Op{Outcome: history.Refused, Reason: string(api.Conflict)}
	out := history.Op{Outcome: history.Refused, Reason: history.SoldOut}
	lost := history.Op{Outcome: history.Unknown, Reason: history.TimedOut}
	for name, c := range map[string]struct {
		ops              ops
		qty, stock, left int
		verdict          api.Verdict
		cause            string
		speed            bool
	}{
		"nothing sold":               {slices.Repeat(ops{down}, 9), 1, 9, 9, api.Inconclusive, "redis is unavailable: 9 of 9 requests", false},
		"less than half":             {append(slices.Repeat(ops{late}, 6), sold, sold, sold), 1, 9, 6, api.Inconclusive, "6 of 9 requests did not acquire the lock in time", false},
		"half":                       {append(slices.Repeat(ops{down}, 3), sold, sold, sold), 1, 9, 6, api.Holds, "", true},
		"half, by the stock":         {append(slices.Repeat(ops{lost}, 3), sold), 1, 9, 5, api.Holds, "", false},
		"no answer":                  {append(slices.Repeat(ops{lost}, 3), sold), 1, 9, 7, api.Inconclusive, "3 of 4 requests got no answer in time", false},
		"prevented by the strategy":  {append(slices.Repeat(ops{conflict}, 8), sold), 1, 9, 8, api.Holds, "", true},
		"only conflicts":             {slices.Repeat(ops{conflict}, 9), 1, 9, 9, api.Inconclusive, "9 of 9 requests ended as conflict", false},
		"sold out":                   {append(slices.Repeat(ops{out}, 7), sold, sold), 1, 2, 0, api.Holds, "", true},
		"sold out, then down":        {append(slices.Repeat(ops{down}, 7), sold, sold), 1, 2, 0, api.Holds, "", false},
		"sold out with pieces left":  {append(slices.Repeat(ops{out}, 7), sold), 1, 9, 8, api.Inconclusive, `7 of 8 requests were answered "sold out", although pieces were left`, false},
		"no stock":                   {slices.Repeat(ops{out}, 7), 1, 0, 0, api.Inconclusive, "nothing to sell: the stock was 0", false},
		"less stock than a purchase": {slices.Repeat(ops{out}, 7), 5, 3, 3, api.Inconclusive, "nothing to sell: the stock was 3", false},
		"no request":                 {nil, 1, 9, 9, api.Inconclusive, "no request was sent", false},
		"broken":                     {append(slices.Repeat(ops{down}, 7), sold, sold), 1, 9, 8, api.Broken, "redis is unavailable: 7 of 9 requests", false},
		"oversold":                   {append(slices.Repeat(ops{out}, 7), sold), 1, 0, -1, api.Broken, "", true},
	} {
		h := history.History{Strategy: "redis", Clients: len(c.ops), Loops: 1}
		for i, op := range c.ops {
			op.Client, op.Qty, op.Return = i+1, c.qty, time.Millisecond
			h.Ops = append(h.Ops, op)
		}
		r := measure.Summarise(h, measure.Setup{Plan: load.Plan{Qty: c.qty}, Stock: c.stock, Remaining: &c.left})
		if r.Verdict != c.verdict || r.Cause.EN != c.cause || (r.Cause.ZH == "") != (c.cause == "") || (r.Rate() > 0) != c.speed {
			t.Errorf("%s: %s, %q, rate %v", name, r.Verdict, r.Cause, r.Rate())
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
	got := sentenceOf(true, 5, left(5), 0, 0, 0, others...)
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

// TestClaimForOneReplica checks a strategy such as mutex, which claims safety for one replica only.
func TestClaimForOneReplica(t *testing.T) {
	result := func(remaining int, replicas ...string) measure.Result {
		h := history.History{Strategy: "mutex", Clients: len(replicas), Loops: 1}
		for i, replica := range replicas {
			h.Ops = append(h.Ops, history.Op{
				Client: i + 1, Qty: 1, Return: time.Millisecond, Replica: replica, Outcome: history.OK, Reason: history.Sold,
			})
		}
		return measure.Summarise(h, measure.Setup{SafeAlone: true, Stock: 5, Remaining: &remaining})
	}
	for _, c := range []struct {
		got  measure.Result
		safe bool
		want string
	}{
		{result(3, "replica-1", "replica-1"), true, "mutex: 2 sold, 3 left, no update lost, as its card says for one replica."},
		{result(4, "replica-1", "replica-1"), true, "this run contradicts the card."},
		{result(3, "replica-1", "replica-2"), false, "Its card does not claim that it is safe: this run was lucky."},
		{result(4, "replica-1", "replica-2"), false, "1 update was lost, so 1 piece could be sold twice."},
	} {
		if c.got.Safe != c.safe || !strings.HasSuffix(c.got.Sentence.EN, c.want) {
			t.Errorf("safe %v, want %v; %q, want %q", c.got.Safe, c.safe, c.got.Sentence.EN, c.want)
		}
	}
}

// TestOverrunAsTheCardSays checks a run whose work takes longer than the lease.
func TestOverrunAsTheCardSays(t *testing.T) {
	remaining := 4
	h := history.History{Strategy: "redis-expire", Clients: 2, Loops: 1}
	for client := range 2 {
		h.Ops = append(h.Ops, history.Op{Client: client + 1, Qty: 1, Return: time.Millisecond, Outcome: history.OK, Reason: history.Sold})
	}
	got := measure.Summarise(h, measure.Setup{Safe: true, Overrun: true, Stock: 5, Remaining: &remaining})
	if got.Safe || !strings.HasSuffix(got.Sentence.EN, "The work took longer than the lease: its card says that this breaks it (overrun).") {
		t.Errorf("safe %v, %q", got.Safe, got.Sentence.EN)
	}
}
