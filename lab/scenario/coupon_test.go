package scenario

import (
	"strings"
	"testing"
	"time"
)

// clicksOf returns one order for each of the ids, by the users 1, 2 and so on. One request is sent
// each second, and is answered half a second later.
func clicksOf(ids ...int64) (clicks []click) {
	for i, id := range ids {
		call := time.Unix(int64(i), 0)
		clicks = append(clicks, click{
			Answer: Answer{Status: 201, Outcome: couponOrdered, Order: id},
			user:   int64(i + 1), called: call, answered: call.Add(time.Second / 2),
		})
	}
	return clicks
}

func TestJudgeCoupon(t *testing.T) {
	t.Parallel()
	type couponOrder = struct{ Order, User int64 }
	good := couponTables{2, 0, []couponOrder{{10, 1}, {20, 2}}}
	for _, c := range []struct {
		why    string
		clicks []click
		tables couponTables
		want   string // part of Broken; empty if the invariant holds
	}{
		{"correct", clicksOf(10, 20), good, ""},
		{"a rejected request", append(clicksOf(10, 20), click{Answer: Answer{Outcome: "sold_out"}, user: 3}), good, ""},
		{"two orders of one user", clicksOf(10, 20), couponTables{2, 0, []couponOrder{{10, 1}, {20, 1}}}, "1 users have more than one order"},
		{"an order without a coupon", clicksOf(10, 20), couponTables{2, 1, good.orders}, "1 coupons were taken from the stock, but there are 2 orders"},
		{"a coupon without an order", clicksOf(10), couponTables{2, 0, good.orders[:1]}, "2 coupons were taken from the stock, but there are 1 orders"},
		{"too many orders", clicksOf(10, 20), couponTables{1, -1, good.orders}, "2 orders for 1 coupons"},
		{"too few orders", clicksOf(10, 20), couponTables{3, 1, good.orders}, "2 orders for 3 coupons"},
		{"a confirmed order that is not stored", clicksOf(10, 21), good, "order 21 was confirmed to user 2"},
		{"the order of another user", clicksOf(20, 10), good, "order 20 was confirmed to user 1"},
		{"an order that was not confirmed", clicksOf(10), good, "1 orders were confirmed, but there are 2"},
		{"an id lower than an earlier one", clicksOf(20, 10), couponTables{2, 0, []couponOrder{{10, 2}, {20, 1}}}, "1 order ids are lower"},
	} {
		r := newResult("coupon", Guard{ID: "test"})
		judgeCoupon(&r, c.clicks, c.tables)
		if broken := r.Violations(); c.want == "" && broken != "" || !strings.Contains(broken, c.want) {
			t.Errorf("%s: broken: %q, want %q", c.why, broken, c.want)
		}
		if r.Sentence.EN == "" || r.Sentence.ZH == "" {
			t.Errorf("%s: the sentence is missing: %+v", c.why, r.Sentence)
		}
	}
}

// Overlapping requests may get their ids in any order.
func TestFallingAllowsOverlap(t *testing.T) {
	t.Parallel()
	clicks := clicksOf(20, 10)
	clicks[1].called = clicks[0].answered.Add(-time.Millisecond)
	if n := falling(clicks); n != 0 {
		t.Errorf("%d ids are counted as falling, though their requests overlap", n)
	}
}

func TestAsClaimed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ safe, holds, want bool }{
		{true, true, true}, {true, false, false}, {false, false, true}, {false, true, false},
	} {
		r := newResult("coupon", Guard{Safe: c.safe})
		if !c.holds {
			r.addBroken("one sale too many", "多卖了一件")
		}
		if r.AsClaimed() != c.want {
			t.Errorf("%+v: %t", c, r.AsClaimed())
		}
	}
}
