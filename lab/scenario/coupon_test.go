package scenario

import (
	"strings"
	"testing"
	"time"
)

// clicksOf are one order after the other, for users 1, 2, ...: called each second, and
// answered half a second later, with these ids.
func clicksOf(ids ...int64) (clicks []click) {
	for i, id := range ids {
		call := time.Unix(int64(i), 0)
		clicks = append(clicks, click{
			Answer: Answer{Status: 201, Outcome: couponOrdered, Order: id},
			user:   int64(i + 1), call: call, back: call.Add(time.Second / 2),
		})
	}
	return clicks
}

func TestJudgeCoupon(t *testing.T) {
	t.Parallel()
	good := couponRows{2, 0, []couponRow{{10, 1}, {20, 2}}}
	for _, c := range []struct {
		why    string
		clicks []click
		table  couponRows
		want   string // in what is broken; empty: it holds
	}{
		{"all is well", clicksOf(10, 20), good, ""},
		{"a refusal is no order", append(clicksOf(10, 20), click{Answer: Answer{Outcome: "sold_out"}, user: 3}), good, ""},
		{"two for one", clicksOf(10, 20), couponRows{2, 0, []couponRow{{10, 1}, {20, 1}}}, "1 users have more than one order"},
		{"an order without its coupon", clicksOf(10, 20), couponRows{2, 1, good.orders}, "1 coupons left the shelf, and there are 2 orders"},
		{"a coupon without its order", clicksOf(10), couponRows{2, 0, good.orders[:1]}, "2 coupons left the shelf, and there are 1 orders"},
		{"too many", clicksOf(10, 20), couponRows{1, -1, good.orders}, "2 orders for 1 coupons"},
		{"too few", clicksOf(10, 20), couponRows{3, 1, good.orders}, "2 orders for 3 coupons"},
		{"a promise that was not kept", clicksOf(10, 21), good, "user 2 was told of order 21"},
		{"somebody else's order", clicksOf(20, 10), good, "user 1 was told of order 20"},
		{"a gift that nobody was told of", clicksOf(10), good, "1 users were told that they have an order, and there are 2"},
		{"an id that falls", clicksOf(20, 10), couponRows{2, 0, []couponRow{{10, 2}, {20, 1}}}, "1 order ids are lower"},
	} {
		r := newResult("coupon", Guard{ID: "test"})
		judgeCoupon(&r, c.clicks, c.table)
		if broken := strings.Join(r.Broken, "\n"); c.want == "" && broken != "" || !strings.Contains(broken, c.want) {
			t.Errorf("%s: broken: %q, want %q", c.why, broken, c.want)
		}
		if r.Sentence.EN == "" || r.Sentence.ZH == "" {
			t.Errorf("%s: the sentence is missing: %+v", c.why, r.Sentence)
		}
	}
}

// Ids of requests that were under way at the same time may come in any order.
func TestFallingIsAboutWhatFollows(t *testing.T) {
	t.Parallel()
	clicks := clicksOf(20, 10)
	clicks[1].call = clicks[0].back.Add(-time.Millisecond)
	if n := falling(clicks); n != 0 {
		t.Errorf("they overlap, and %d are said to fall", n)
	}
}

func TestAsClaimed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ safe, holds, want bool }{
		{true, true, true}, {true, false, false}, {false, false, true}, {false, true, false},
	} {
		r := newResult("coupon", Guard{Safe: c.safe})
		if !c.holds {
			r.broke("the pot")
		}
		if r.AsClaimed() != c.want {
			t.Errorf("%+v: %t", c, r.AsClaimed())
		}
	}
}
