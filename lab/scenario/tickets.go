package scenario

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"oversell/lab/replica"
	"oversell/lab/report"
)

// The show that the windows sell, and how many tickets are printed: document 002's.
const (
	show     = 1
	printed  = 1000
	windows  = 5
	showPath = "/shows/1"
	showKey  = "show:1"
)

// Tickets are sold at five windows, each a process of its own (document 002): every number
// once, and none left out. A count that ends at 0 proves neither.
func Tickets() Scenario { return tickets(printed) }

func tickets(printed int) Scenario {
	return Scenario{
		ID: "tickets", Replicas: windows,
		Title: report.Sentence{EN: "five windows sell 1000 numbered tickets", ZH: "五个窗口卖一千张编号车票"},
		Guards: []Guard{
			{ID: "none", first: "writing", second: "writing"},
			// Both have counted down before either asks for its number.
			{ID: "decrement", first: "read", second: "read"},
			{ID: "mutex", first: "writing", second: "writing"},
			{ID: "redis", Safe: true, first: "writing", second: "writing"},
			{ID: "unique-key", Safe: true, first: "writing", second: "writing"},
		},
		Run: func(ctx context.Context, shop Shop, guard Guard) (Result, error) {
			return sellTickets(ctx, shop, guard, printed)
		},
	}
}

// box is what the tables hold of the show.
type box struct {
	Tickets int `json:"tickets"`
	Next    int `json:"next"`
	Sold    []struct {
		Number int `json:"number"`
	} `json:"sold"`
}

func sellTickets(ctx context.Context, shop Shop, guard Guard, printed int) (Result, error) {
	at := shop.Replicas[0]
	if err := at.Call(ctx, http.MethodPut, fmt.Sprintf("%s?tickets=%d", showPath, printed), nil, nil); err != nil {
		return Result{}, err
	}
	ask := func(wait string) func(context.Context, replica.Replica) Answer {
		return func(ctx context.Context, window replica.Replica) Answer {
			return post(ctx, window, showPath+"/tickets?guard="+guard.ID+"&wait="+wait)
		}
	}
	// Who finds the lock taken has its answer at once, and the first one goes on.
	told, err := duel(ctx, shop, showKey, guard, ask("0s"))
	if err != nil {
		return Result{}, err
	}
	told = append(told, openWindows(ctx, shop, printed, ask("30s"))...)
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	var kept box
	if err := at.Call(ctx, http.MethodGet, showPath, nil, &kept); err != nil {
		return Result{}, err
	}
	return judgeTickets(guard, told, kept), nil
}

// openWindows lets each window sell until it is told that nothing is left. A guard that
// loses count might never say so: nobody sells more than all.
func openWindows(ctx context.Context, shop Shop, printed int, sell func(context.Context, replica.Replica) Answer) []Answer {
	told := make([][]Answer, len(shop.Replicas))
	var open sync.WaitGroup
	for i, window := range shop.Replicas {
		open.Go(func() {
			for range 2 * printed {
				a := sell(ctx, window)
				told[i] = append(told[i], a)
				if a.Outcome == "sold_out" || ctx.Err() != nil {
					return
				}
			}
		})
	}
	open.Wait()
	var all []Answer
	for _, answers := range told {
		all = append(all, answers...)
	}
	return all
}

// judgeTickets holds what the windows were told, and what the tables hold, against the
// numbers that were printed.
func judgeTickets(guard Guard, told []Answer, kept box) Result {
	r := newResult("tickets", guard)
	handed, lost := map[int]int{}, 0
	for _, a := range told {
		r.Told[a.Outcome]++
		switch a.Outcome {
		case "sold":
			handed[a.Number]++
		case unknown:
			lost++
		}
	}
	stored := map[int]int{}
	for _, s := range kept.Sold {
		stored[s.Number]++
	}
	twice, never, strange := 0, 0, 0
	for number := 1; number <= kept.Tickets; number++ {
		switch n := max(handed[number], stored[number]); {
		case n > 1:
			twice++
		case n == 0:
			never++
		}
		if handed[number] > stored[number] {
			strange++
		}
	}
	if twice > 0 {
		r.broke("%d numbers were sold more than once", twice)
	}
	if never > 0 {
		r.broke("%d numbers were never sold", never)
	}
	if strange > 0 {
		r.broke("of %d numbers more were handed out than the table knows of", strange)
	}
	if more := len(kept.Sold) - r.Told["sold"]; more > lost {
		r.broke("%d sales are in the table that no window was told of", more-lost)
	}
	if kept.Next != 0 {
		r.broke("the show goes on with number %d, though the windows are closed", kept.Next)
	}
	r.Figures = map[string]float64{"twice": float64(twice), "never": float64(never), "next": float64(kept.Next)}
	r.Sentence = ticketsSentence(r, kept, twice, never)
	return r
}

func ticketsSentence(r Result, kept box, twice, never int) report.Sentence {
	sold := r.Told["sold"]
	if r.Holds() {
		return report.Sentence{
			EN: fmt.Sprintf("tickets, guard %s: %d windows sold %d tickets, every number once and none left out.", r.Guard, windows, sold),
			ZH: fmt.Sprintf("抢票，%s：%d 个窗口卖出 %d 张票，每个号只卖一次，一个不漏。", r.Guard, windows, sold),
		}
	}
	return report.Sentence{
		EN: fmt.Sprintf("tickets, guard %s: %d windows sold %d tickets of %d: %d numbers more than once, %d never; the count says %d.", r.Guard, windows, sold, kept.Tickets, twice, never, kept.Next),
		ZH: fmt.Sprintf("抢票，%s：%d 个窗口卖出 %d 张票（共印 %d 张）：%d 个号卖了不止一次，%d 个号没卖；余票显示 %d。", r.Guard, windows, sold, kept.Tickets, twice, never, kept.Next),
	}
}
