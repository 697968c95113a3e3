package scenario

import (
	"fmt"
	"net/http"
	"testing"

	"oversell/lab/history"
)

// The numbers are fewer than in the class: the race is made sure by a step.
func TestTickets(t *testing.T) {
	const printed = 100
	shop, s := open(t), tickets(printed)
	for _, guard := range s.Guards {
		t.Run(guard.ID, func(t *testing.T) {
			for nth := range runsOf(guard) {
				r, err := s.Run(t.Context(), shop, guard)
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
		})
	}
}

// A window is killed, once with the lock and no ticket sold, once with a ticket sold and
// the lock still its own. The others go on when the lease is over, with the next number.
func TestWindowIsKilled(t *testing.T) {
	const printed = 20
	shop := open(t)
	guard := Guard{ID: "redis", Safe: true}
	desk, victim := shop.Replicas[0], shop.Replicas[windows-1]
	path := showPath + "/tickets?guard=redis&wait=60s"
	look := func(t *testing.T) (kept box) {
		t.Helper()
		if err := desk.Call(t.Context(), http.MethodGet, showPath, nil, &kept); err != nil {
			t.Fatal(err)
		}
		return kept
	}
	for step, sold := range map[string]int{"writing": 0, "written": 1} {
		t.Run(step, func(t *testing.T) {
			if err := desk.Call(t.Context(), http.MethodPut, fmt.Sprintf("%s?tickets=%d", showPath, printed), nil, nil); err != nil {
				t.Fatal(err)
			}
			if err := victim.DieAt(t.Context(), showKey, step); err != nil {
				t.Fatal(err)
			}
			told := []Answer{post(t.Context(), victim, path)}
			if kept := look(t); told[0].Outcome != unknown || len(kept.Sold) != sold {
				t.Fatalf("it was to die after %d sales: %+v, %+v", sold, told[0], kept)
			}
			for range printed - sold {
				told = append(told, post(t.Context(), desk, path))
			}
			if r := judgeTickets(guard, told, look(t)); !r.Holds() {
				t.Errorf("%v, told %v", r.Broken, r.Told)
			}
			server, err := class.Server(fmt.Sprintf("replica-%d", windows))
			if err != nil {
				t.Fatal(err)
			}
			if err := server.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Bad input is told what is wrong with it, and writes nothing.
func TestBadTickets(t *testing.T) {
	at := open(t).Replicas[0]
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
