package scenario

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"oversell/api"
	"oversell/lab/history"
)

const (
	ticketCount = 1000
	windows     = 5
	showPath    = "/shows/1"
	showKey     = "show:1"
)

// Tickets returns the scenario that sells numbered tickets at five windows (document 002). Each
// window is a replica. Every number must be sold once. A count of tickets that ends at 0 does not
// prove that every number was sold once.
func Tickets() Scenario { return tickets(ticketCount) }

func tickets(count int) Scenario {
	return Scenario{
		ID: "tickets", Replicas: windows,
		Title: api.Text{EN: "Five windows sell 1000 numbered tickets", ZH: "五个窗口卖一千张编号车票"},
		Guards: []Guard{
			newGuard("none", false, api.Writing, api.Writing, "no guard: read the next number, and write it back plus one", "无防护：读取下一个号，加一写回"),
			// Both requests have decremented the count before one of them reads the count as its number.
			newGuard("decrement", false, api.Read, api.Read, "decrement the count in one statement, then read it as the number", "用一条语句减少余票，再读余票当作票号"),
			newGuard("mutex", false, api.Writing, api.Writing, "a mutex in each window", "每个窗口里一把互斥锁"),
			newGuard("redis", true, api.Writing, api.Writing, "a Redis lock for the show", "整场演出一把 Redis 锁"),
			newGuard("unique", true, api.Writing, api.Writing, "a unique index on the number", "票号上的唯一索引"),
		},
		Run: func(ctx context.Context, service Service, guard Guard) (Result, error) {
			return sellTickets(ctx, service, guard, count)
		},
	}
}

type show struct {
	Tickets int                    `json:"tickets"`
	Next    int                    `json:"next"`
	Sold    []struct{ Number int } `json:"sold"`
}

func sellTickets(ctx context.Context, service Service, guard Guard, count int) (Result, error) {
	replica := service.Replicas[0]
	if err := replica.Call(ctx, http.MethodPut, fmt.Sprintf("%s?tickets=%d", showPath, count), nil, nil); err != nil {
		return Result{}, err
	}
	sell := func(wait string) func(context.Context, api.Client) Answer {
		return func(ctx context.Context, window api.Client) Answer {
			return post(ctx, window, showPath+"/tickets?guard="+guard.ID+"&wait="+wait)
		}
	}
	// The wait is 0 s: a right lock rejects the second request while the first one holds it.
	answers, err := race(ctx, service, showKey, guard, sell("0s"))
	if err != nil {
		return Result{}, err
	}
	answers = slices.Concat(append(concurrently(len(service.Replicas), func(i int) []Answer {
		return untilSoldOut(ctx, 2*count, func() Answer { return sell("30s")(ctx, service.Replicas[i]) })
	}), answers)...)
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	if err := unavailable(answers); err != nil {
		return Result{}, err
	}
	var tables show
	if err := replica.Call(ctx, http.MethodGet, showPath, nil, &tables); err != nil {
		return Result{}, err
	}
	return judgeTickets(guard, answers, tables), nil
}

// wrongNumbers has the number of ticket numbers with each kind of error.
type wrongNumbers struct {
	twice, never int
	unrecorded   int // answered as sold more often than the table has them
	unprinted    int // not on any printed ticket
}

func judgeTickets(guard Guard, answers []Answer, tables show) Result {
	r := newResult("tickets", guard)
	answered, stored := map[int]int{}, map[int]int{}
	for _, a := range answers {
		r.Outcomes[a.Outcome]++
		if a.Outcome == history.Sold {
			answered[a.Number]++
		}
	}
	for _, s := range tables.Sold {
		stored[s.Number]++
	}
	wrong := compareTickets(answered, stored, tables.Tickets)
	for _, c := range []struct {
		count  int
		en, zh string
	}{
		{wrong.twice, "%d numbers were sold more than once", "%d 个号码卖了不止一次"},
		{wrong.never, "%d numbers were never sold", "%d 个号码一直没有卖出"},
		{wrong.unrecorded, "%d numbers were answered as sold more often than the table has them", "%d 个号码应答售出的次数多于表里的记录"},
		{wrong.unprinted, "%d numbers were sold that were not printed", "%d 个卖出的号码没有印过票"},
		// A request without an answer may have sold a ticket, so such requests are subtracted here.
		{max(0, len(tables.Sold)-r.Outcomes[history.Sold]-r.Outcomes[unknown]), "%d sales are in the table, but no window got an answer for them", "表里有 %d 笔销售，但没有窗口收到应答"},
		{tables.Next, "the next number is %d, though the tickets are sold out", "票已售完，下一个号码却是 %d"},
	} {
		if c.count != 0 {
			r.addBroken(c.en, c.zh, c.count)
		}
	}
	r.Figures = map[string]float64{"twice": float64(wrong.twice), "never": float64(wrong.never), "next": float64(tables.Next)}
	r.describe("tickets, guard %s: %d windows sold %d of %d tickets: ", "抢票，防护方案 %s：%d 个窗口卖出 %d 张票（共印 %d 张）：",
		r.Guard, windows, r.Outcomes[history.Sold], tables.Tickets)
	if r.Holds() {
		r.describe("every number once.", "每个号只卖一次，一个不漏。")
	} else {
		r.describe("%d numbers more than once, %d never; the count ends at %d.", "%d 个号卖了不止一次，%d 个号没卖；余票显示 %d。",
			wrong.twice, wrong.never, tables.Next)
	}
	return r
}

// compareTickets counts wrong numbers. answered and stored have how often each number was sold.
func compareTickets(answered, stored map[int]int, count int) (wrong wrongNumbers) {
	sold := maps.Clone(answered)
	for number, n := range stored {
		sold[number] = max(sold[number], n)
	}
	for number := 1; number <= count; number++ {
		if sold[number] == 0 {
			wrong.never++
		}
	}
	for number, n := range sold {
		if n > 1 {
			wrong.twice++
		}
		if answered[number] > stored[number] {
			wrong.unrecorded++
		}
		if number < 1 || number > count {
			wrong.unprinted++
		}
	}
	return wrong
}
