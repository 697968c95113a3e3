package scenario

import (
	"fmt"
	"net/http"
	"testing"

	"oversell/api"
	"oversell/lab/history"
	"oversell/lab/rig"
)

// windowsSell runs the scenario with fewer tickets than Tickets does. Its two requests race all the
// same, because failpoints force them to.
func windowsSell(t *testing.T, service Service, guard Guard) {
	const count = 100
	for nth := range runsOf(guard) {
		r, err := tickets(count).Run(t.Context(), service, guard)
		if err != nil {
			t.Fatal(err)
		}
		if !r.AsClaimed() || r.Sentence.EN == "" || r.Sentence.ZH == "" {
			t.Errorf("run %d: %+v", nth+1, r)
		}
		if r.Safe && r.Outcomes[history.Sold] != count {
			t.Errorf("run %d: %d answers were \"sold\", for %d tickets", nth+1, r.Outcomes[history.Sold], count)
		}
		if guard.ID == "decrement" && r.Figures["next"] != 0 {
			t.Errorf("run %d: the count must end at 0, and ends at %v", nth+1, r.Figures["next"])
		}
	}
}

// windowIsKilled kills the replica that holds the lock, before or after the replica sells a ticket.
// Another replica must sell all remaining tickets after the lock's lease expires.
func windowIsKilled(t *testing.T, lab *rig.Rig, service Service, step string, sold int) {
	const count = 20
	other, holder := service.Replicas[0], service.Replicas[windows-1]
	path := showPath + "/tickets?guard=redis&wait=60s"
	call := func(to api.Client, method, path string, body, answer any) {
		t.Helper()
		if err := to.Call(t.Context(), method, path, body, answer); err != nil {
			t.Fatal(err)
		}
	}
	call(other, http.MethodPut, fmt.Sprintf("%s?tickets=%d", showPath, count), nil, nil)
	call(holder, http.MethodPost, "/lab/failpoints", map[string]string{"key": showKey, "step": step, "do": "die"}, nil)
	answers := []Answer{post(t.Context(), holder, path)}
	var tables show
	if call(other, http.MethodGet, showPath, nil, &tables); answers[0].Outcome != unknown || len(tables.Sold) != sold {
		t.Fatalf("the replica should have died after %d sales: %+v, %+v", sold, answers[0], tables)
	}
	for range count - sold {
		answers = append(answers, post(t.Context(), other, path))
	}
	call(other, http.MethodGet, showPath, nil, &tables)
	if r := judgeTickets(Guard{ID: "redis", Safe: true}, answers, tables); !r.Holds() {
		t.Errorf("%v, answers %v", r.Broken, r.Outcomes)
	}
	server, err := lab.Server(fmt.Sprintf("replica-%d", windows))
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// badTickets sends bad input. The answer must name the error, and no data may be written.
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
		t.Error("tickets were printed without the token")
	}
	for _, bad := range []string{"", "?tickets=-1", "?tickets=1e3", "?tickets=1000001", "?count=5"} {
		if err := at.Call(t.Context(), http.MethodPut, "/shows/1"+bad, nil, nil); err == nil {
			t.Errorf("PUT /shows/1%s was accepted", bad)
		}
	}
	var tables show
	if err := at.Call(t.Context(), http.MethodGet, "/shows/1", nil, &tables); err != nil || tables.Next != 3 || len(tables.Sold) != 0 {
		t.Errorf("bad requests sold tickets: %+v, %v", tables, err)
	}
}

func TestJudgeTickets(t *testing.T) {
	t.Parallel()
	sold := func(numbers ...int) (answers []Answer) {
		for _, n := range numbers {
			answers = append(answers, Answer{Outcome: history.Sold, Number: n})
		}
		return answers
	}
	tables := func(next int, numbers ...int) show {
		s := show{Tickets: 3, Next: next}
		for _, n := range numbers {
			s.Sold = append(s.Sold, struct{ Number int }{n})
		}
		return s
	}
	for name, c := range map[string]struct {
		answers []Answer
		tables  show
		holds   bool
	}{
		"each once":                       {sold(3, 2, 1), tables(0, 3, 2, 1), true},
		"an answer was lost":              {append(sold(3, 1), Answer{Outcome: unknown}), tables(0, 3, 2, 1), true},
		"sold twice":                      {sold(3, 3, 2, 1), tables(0, 3, 3, 2, 1), false},
		"twice and never, the count is 0": {sold(3, 1, 1), tables(0, 3, 1, 1), false},
		"answered and not stored":         {sold(3, 2, 1), tables(0, 3, 1), false},
		"stored and not answered":         {sold(3, 1), tables(0, 3, 2, 1), false},
		"tickets are left":                {sold(3, 2), tables(1, 3, 2), false},
		"the count is behind":             {sold(3, 2, 1), tables(1, 3, 2, 1), false},
		"a number that was not printed":   {sold(4, 3, 2, 1), tables(0, 4, 3, 2, 1), false},
	} {
		if r := judgeTickets(Guard{}, c.answers, c.tables); r.Holds() != c.holds {
			t.Errorf("%s: %v", name, r.Broken)
		}
	}
}
