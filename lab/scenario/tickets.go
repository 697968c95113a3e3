package scenario

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"oversell/api"
	"oversell/lab/history"
	"oversell/lab/report"
)

// The show that the windows sell, and how many tickets are printed: document 002's.
const (
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
		Title: report.Sentence{EN: "Five windows sell 1000 numbered tickets", ZH: "五个窗口卖一千张编号车票"},
		Guards: []Guard{
			{ID: "none", first: "writing", second: "writing"},
			// Both have counted down before either asks for its number.
			{ID: "decrement", first: "read", second: "read"},
			{ID: "mutex", first: "writing", second: "writing"},
			{ID: "redis", Safe: true, first: "writing", second: "writing"},
			{ID: "unique", Safe: true, first: "writing", second: "writing"},
		},
		Run: func(ctx context.Context, shop Shop, guard Guard) (Result, error) {
			return sellTickets(ctx, shop, guard, printed)
		},
	}
}

// box is what the tables hold of the show.
type box struct {
	Tickets int      `json:"tickets"`
	Next    int      `json:"next"`
	Sold    []ticket `json:"sold"`
}

type ticket struct {
	Number int `json:"number"`
}

func sellTickets(ctx context.Context, shop Shop, guard Guard, printed int) (Result, error) {
	at := shop.Replicas[0]
	if err := at.Call(ctx, http.MethodPut, fmt.Sprintf("%s?tickets=%d", showPath, printed), nil, nil); err != nil {
		return Result{}, err
	}
	ask := func(wait string) func(context.Context, api.Client) Answer {
		return func(ctx context.Context, window api.Client) Answer {
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
func openWindows(ctx context.Context, shop Shop, printed int, sell func(context.Context, api.Client) Answer) []Answer {
	return slices.Concat(storm(len(shop.Replicas), func(i int) (told []Answer) {
		for range 2 * printed {
			a := sell(ctx, shop.Replicas[i])
			told = append(told, a)
			if a.Outcome == history.SoldOut || ctx.Err() != nil {
				break
			}
		}
		return told
	})...)
}

// audit counts numbers: those that are not once where they should be.
type audit struct {
	twice, never int
	unnoted      int // handed out more often than the table knows of
	unprinted    int // that no ticket has
}

// judgeTickets holds what the windows were told, and what the tables hold, against the
// numbers that were printed.
func judgeTickets(guard Guard, told []Answer, kept box) Result {
	r := newResult("tickets", guard)
	handed, stored := map[int]int{}, map[int]int{}
	for _, a := range told {
		r.Told[a.Outcome]++
		if a.Outcome == history.Sold {
			handed[a.Number]++
		}
	}
	for _, s := range kept.Sold {
		stored[s.Number]++
	}
	found := compareTickets(handed, stored, kept.Tickets)
	if found.twice > 0 {
		r.broke("%d numbers were sold more than once", found.twice)
	}
	if found.never > 0 {
		r.broke("%d numbers were never sold", found.never)
	}
	if found.unnoted > 0 {
		r.broke("%d numbers were handed out more often than the table knows of", found.unnoted)
	}
	if found.unprinted > 0 {
		r.broke("%d numbers were sold that were not printed", found.unprinted)
	}
	// A window that got no answer may have sold one.
	if more := len(kept.Sold) - r.Told[history.Sold] - r.Told[unknown]; more > 0 {
		r.broke("%d sales are in the table that no window was told of", more)
	}
	if kept.Next != 0 {
		r.broke("the show goes on with number %d, though the windows are closed", kept.Next)
	}
	r.Figures = map[string]float64{"twice": float64(found.twice), "never": float64(found.never), "next": float64(kept.Next)}
	r.Sentence = ticketsSentence(r, kept, found)
	return r
}

// compareTickets takes how often each number was handed out, and how often it was stored.
func compareTickets(handed, stored map[int]int, printed int) (found audit) {
	sold := maps.Clone(handed)
	for number, n := range stored {
		sold[number] = max(sold[number], n)
	}
	for number := 1; number <= printed; number++ {
		if sold[number] == 0 {
			found.never++
		}
	}
	for number, n := range sold {
		if n > 1 {
			found.twice++
		}
		if handed[number] > stored[number] {
			found.unnoted++
		}
		if number < 1 || number > printed {
			found.unprinted++
		}
	}
	return found
}

func ticketsSentence(r Result, kept box, found audit) report.Sentence {
	sold := r.Told[history.Sold]
	if r.Holds() {
		return report.Sentence{
			EN: fmt.Sprintf("tickets, guard %s: %d windows sold %d tickets, every number once and none left out.", r.Guard, windows, sold),
			ZH: fmt.Sprintf("抢票，守护 %s：%d 个窗口卖出 %d 张票，每个号只卖一次，一个不漏。", r.Guard, windows, sold),
		}
	}
	return report.Sentence{
		EN: fmt.Sprintf("tickets, guard %s: %d windows sold %d tickets of %d: %d numbers more than once, %d never; the count says %d.", r.Guard, windows, sold, kept.Tickets, found.twice, found.never, kept.Next),
		ZH: fmt.Sprintf("抢票，守护 %s：%d 个窗口卖出 %d 张票（共印 %d 张）：%d 个号卖了不止一次，%d 个号没卖；余票显示 %d。", r.Guard, windows, sold, kept.Tickets, found.twice, found.never, kept.Next),
	}
}
