package scenario

import (
	"fmt"
	"net/http"
	"testing"

	"oversell/api"
	"oversell/lab/history"
	"oversell/lab/rig"
)

// windowsSell sells fewer numbers than in the class: the race is made sure by a step.
func windowsSell(t *testing.T, shop Shop, guard Guard) {
	const printed = 100
	for nth := range runsOf(guard) {
		r, err := tickets(printed).Run(t.Context(), shop, guard)
		if err != nil {
			t.Fatal(err)
		}
		if !r.AsClaimed() || r.Sentence.EN == "" || r.Sentence.ZH == "" {
			t.Errorf("run %d: %+v", nth+1, r)
		}
		if r.Safe && r.Told[history.Sold] != printed {
			t.Errorf("run %d: windows were told %d times that they sold, of %d tickets", nth+1, r.Told[history.Sold], printed)
		}
		if guard.ID == "decrement" && r.Figures["next"] != 0 {
			t.Errorf("run %d: its count is exact, and here it says %v", nth+1, r.Figures["next"])
		}
	}
}

// windowIsKilled kills one that has the lock, before or after it has sold a ticket. The
// others go on when the lease is over, with the next number.
func windowIsKilled(t *testing.T, class *rig.Rig, shop Shop, step string, sold int) {
	const printed = 20
	desk, victim := shop.Replicas[0], shop.Replicas[windows-1]
	path := showPath + "/tickets?guard=redis&wait=60s"
	ask := func(to api.Client, method, path string, body, answer any) {
		t.Helper()
		if err := to.Call(t.Context(), method, path, body, answer); err != nil {
			t.Fatal(err)
		}
	}
	ask(desk, http.MethodPut, fmt.Sprintf("%s?tickets=%d", showPath, printed), nil, nil)
	ask(victim, http.MethodPost, "/lab/failpoints", map[string]string{"key": showKey, "step": step, "do": "die"}, nil)
	told := []Answer{post(t.Context(), victim, path)}
	var kept box
	if ask(desk, http.MethodGet, showPath, nil, &kept); told[0].Outcome != unknown || len(kept.Sold) != sold {
		t.Fatalf("it was to die after %d sales: %+v, %+v", sold, told[0], kept)
	}
	for range printed - sold {
		told = append(told, post(t.Context(), desk, path))
	}
	ask(desk, http.MethodGet, showPath, nil, &kept)
	if r := judgeTickets(Guard{ID: "redis", Safe: true}, told, kept); !r.Holds() {
		t.Errorf("%v, told %v", r.Broken, r.Told)
	}
	server, err := class.Server(fmt.Sprintf("replica-%d", windows))
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// badTickets: bad input is told what is wrong with it, and writes nothing.
func badTickets(t *testing.T, at api.Client) {
	if err := at.Call(t.Context(), http.MethodPut, "/shows/1?tickets=3", nil, nil); err != nil {
		t.Fatal(err)
	}
	for path, status := range map[string]int{
		"/shows/2/tickets":                    http.StatusNotFound,
		"/shows/2/tickets?guard=redis":        http.StatusNotFound,
		"/shows/2/tickets?guard=decrement":    http.StatusNotFound,
		"/shows/0/tickets":                    http.StatusBadRequest,
		"/shows/x/tickets":                    http.StatusBadRequest,
		"/shows/99999999999999999999/tickets": http.StatusBadRequest,
		"/shows/1/tickets?guard=hope":         http.StatusBadRequest,
		"/shows/1/tickets?guard=":             http.StatusBadRequest,
		"/shows/1/tickets?window=":            http.StatusBadRequest,
		"/shows/1/tickets?window=a%20b":       http.StatusBadRequest,
		"/shows/1/tickets?window=1&window=2":  http.StatusBadRequest,
		"/shows/1/tickets?wait=-1s":           http.StatusBadRequest,
		"/shows/1/tickets?wait=61s":           http.StatusBadRequest,
		"/shows/1/tickets?gaurd=redis":        http.StatusBadRequest,
	} {
		refused(t, at, path, status)
	}
	stranger := at
	stranger.Token = "guess"
	if err := stranger.Call(t.Context(), http.MethodPut, "/shows/1?tickets=9", nil, nil); err == nil {
		t.Error("a stranger printed tickets")
	}
	for _, bad := range []string{"", "?tickets=-1", "?tickets=1e3", "?tickets=1000001", "?count=5"} {
		if err := at.Call(t.Context(), http.MethodPut, "/shows/1"+bad, nil, nil); err == nil {
			t.Errorf("PUT /shows/1%s was accepted", bad)
		}
	}
	var kept box
	if err := at.Call(t.Context(), http.MethodGet, "/shows/1", nil, &kept); err != nil || kept.Next != 3 || len(kept.Sold) != 0 {
		t.Errorf("bad requests sold tickets: %+v, %v", kept, err)
	}
}

func TestJudgeTickets(t *testing.T) {
	t.Parallel()
	sold := func(numbers ...int) (told []Answer) {
		for _, n := range numbers {
			told = append(told, Answer{Outcome: history.Sold, Number: n})
		}
		return told
	}
	kept := func(next int, numbers ...int) box {
		b := box{Tickets: 3, Next: next}
		for _, n := range numbers {
			b.Sold = append(b.Sold, ticket{n})
		}
		return b
	}
	for name, c := range map[string]struct {
		told  []Answer
		kept  box
		holds bool
	}{
		"each once":                       {sold(3, 2, 1), kept(0, 3, 2, 1), true},
		"an answer was lost":              {append(sold(3, 1), Answer{Outcome: unknown}), kept(0, 3, 2, 1), true},
		"sold twice":                      {sold(3, 3, 2, 1), kept(0, 3, 3, 2, 1), false},
		"twice and never, the count is 0": {sold(3, 1, 1), kept(0, 3, 1, 1), false},
		"handed out and not noted":        {sold(3, 2, 1), kept(0, 3, 1), false},
		"noted and not handed out":        {sold(3, 1), kept(0, 3, 2, 1), false},
		"tickets are left":                {sold(3, 2), kept(1, 3, 2), false},
		"the count is behind":             {sold(3, 2, 1), kept(1, 3, 2, 1), false},
		"a number that was not printed":   {sold(4, 3, 2, 1), kept(0, 4, 3, 2, 1), false},
	} {
		if r := judgeTickets(Guard{}, c.told, c.kept); r.Holds() != c.holds {
			t.Errorf("%s: %v", name, r.Broken)
		}
	}
}
