package scenario

import (
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"oversell/lab/history"
	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

// open starts a shop with so many replicas.
func open(t *testing.T, replicas int) (*rig.Rig, Shop) {
	t.Helper()
	r := rigtest.Start(t, rig.Config{MySQL: true, Redis: 1, Zookeeper: true, Etcd: true, Replicas: replicas, Token: "test-token"})
	return r, shopOf(t, r)
}

// The numbers are few, and the races are made sure by a step: what one run shows, ten do.
func TestTickets(t *testing.T) {
	_, shop := open(t, windows)
	asClaimed(t, shop, tickets(100), func(t *testing.T, r Result) {
		if r.Safe && r.Told[history.Sold] != 100 {
			t.Errorf("%d windows were told that they sold, of 100 tickets", r.Told[history.Sold])
		}
		if r.Guard == "decrement" && r.Figures["next"] != 0 {
			t.Errorf("its count is exact, and here it says %v", r.Figures["next"])
		}
	})
}

func TestFlash(t *testing.T) {
	_, shop := open(t, 3)
	asClaimed(t, shop, flash(600, 100), func(t *testing.T, r Result) {
		if late := r.Told[history.SoldOut]; r.Safe && late != 500 {
			t.Errorf("%d of 500 were told that all is sold", late)
		}
		if r.Guard == "redis-watch" && r.Figures["conflicts"] == 0 {
			t.Error("600 at once, and not one of them met a rival")
		}
	})
}

func TestGrain(t *testing.T) {
	_, shop := open(t, 3)
	asClaimed(t, shop, grain(10), func(t *testing.T, r Result) {
		if r.Guard == "each" && r.Figures["factor"] <= 1 {
			t.Errorf("a lock for each is %.2f times as fast as one for all", r.Figures["factor"])
		}
	})
}

// A window is killed, once with the lock and no ticket sold, once with a ticket sold and
// the lock still its own. The others go on when the lease is over, with the next number.
func TestWindowIsKilled(t *testing.T) {
	r, shop := open(t, windows)
	redis, err := tickets(20).Guard("redis")
	if err != nil {
		t.Fatal(err)
	}
	for step, sold := range map[string]int{"writing": 0, "written": 1} {
		t.Run(step, func(t *testing.T) {
			victim := shop.Replicas[4]
			if err := shop.Replicas[0].Call(t.Context(), http.MethodPut, showPath+"?tickets=20", nil, nil); err != nil {
				t.Fatal(err)
			}
			if err := victim.DieAt(t.Context(), showKey, step); err != nil {
				t.Fatal(err)
			}
			told := []Answer{post(t.Context(), victim, showPath+"/tickets?guard=redis")}
			if told[0].Outcome != unknown {
				t.Fatalf("it was to die: %+v", told[0])
			}
			var kept box
			if err := shop.Replicas[0].Call(t.Context(), http.MethodGet, showPath, nil, &kept); err != nil || len(kept.Sold) != sold {
				t.Fatalf("%d sold by the dead, want %d: %v", len(kept.Sold), sold, err)
			}
			for range 20 - sold {
				told = append(told, post(t.Context(), shop.Replicas[0], showPath+"/tickets?guard=redis&wait=60s"))
			}
			if err := shop.Replicas[0].Call(t.Context(), http.MethodGet, showPath, nil, &kept); err != nil {
				t.Fatal(err)
			}
			if got := judgeTickets(redis, told, kept); !got.Holds() {
				t.Errorf("%v, told %v", got.Broken, got.Told)
			}
			server, err := r.Server("replica-5")
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
func TestBadTicketsAndGoods(t *testing.T) {
	_, shop := open(t, 1)
	at := shop.Replicas[0]
	if err := at.Call(t.Context(), http.MethodPut, "/shows/1?tickets=3", nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := at.Stock(t.Context(), firstGoods, 3); err != nil {
		t.Fatal(err)
	}
	for path, status := range map[string]int{
		"/shows/2/tickets":                        http.StatusNotFound,
		"/shows/0/tickets":                        http.StatusBadRequest,
		"/shows/x/tickets":                        http.StatusBadRequest,
		"/shows/99999999999999999999/tickets":     http.StatusBadRequest,
		"/shows/1/tickets?guard=hope":             http.StatusBadRequest,
		"/shows/1/tickets?guard=":                 http.StatusBadRequest,
		"/shows/1/tickets?window=":                http.StatusBadRequest,
		"/shows/1/tickets?window=a%20b":           http.StatusBadRequest,
		"/shows/1/tickets?window=1&window=2":      http.StatusBadRequest,
		"/shows/1/tickets?wait=-1s":               http.StatusBadRequest,
		"/shows/1/tickets?wait=61s":               http.StatusBadRequest,
		"/shows/1/tickets?gaurd=redis":            http.StatusBadRequest,
		"/goods/999/orders":                       http.StatusNotFound,
		"/goods/999/orders?grain=all":             http.StatusNotFound,
		"/goods/0/orders":                         http.StatusBadRequest,
		"/goods/101/orders?grain=fine":            http.StatusBadRequest,
		"/goods/101/orders?hold=1h":               http.StatusBadRequest,
		"/goods/101/orders?qty=1":                 http.StatusBadRequest,
		"/goods/101/orders?grain=all&grain=order": http.StatusBadRequest,
	} {
		if a := post(t.Context(), at, path); a.Status != status || a.Outcome == unknown || a.Detail == "" {
			t.Errorf("%s: %+v, want %d", path, a, status)
		}
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
	if n, err := at.Count(t.Context(), "none", firstGoods); err != nil || n != 3 {
		t.Errorf("bad requests sold goods: %d left of 3, %v", n, err)
	}
}

// asClaimed runs the scenario with each guard.
func asClaimed(t *testing.T, shop Shop, s Scenario, more func(*testing.T, Result)) {
	for _, guard := range s.Guards {
		t.Run(guard.ID, func(t *testing.T) {
			for nth := range runsOf(t, guard) {
				r, err := s.Run(t.Context(), shop, guard)
				if err != nil {
					t.Fatal(err)
				}
				if !r.AsClaimed() || r.Sentence.EN == "" || r.Sentence.ZH == "" {
					t.Errorf("run %d: %+v", nth+1, r)
				}
				more(t, r)
			}
		})
	}
}

func TestJudgeTickets(t *testing.T) {
	sold := func(numbers ...int) (told []Answer) {
		for _, n := range numbers {
			told = append(told, Answer{Outcome: "sold", Number: n})
		}
		return told
	}
	kept := func(next int, numbers ...int) box {
		b := box{Tickets: 3, Next: next}
		for _, n := range numbers {
			b.Sold = append(b.Sold, struct {
				Number int `json:"number"`
			}{n})
		}
		return b
	}
	nobody := Answer{Outcome: unknown}
	for name, c := range map[string]struct {
		told  []Answer
		kept  box
		holds bool
	}{
		"each once":                       {sold(3, 2, 1), kept(0, 3, 2, 1), true},
		"an answer was lost":              {append(sold(3, 1), nobody), kept(0, 3, 2, 1), true},
		"sold twice":                      {sold(3, 3, 2, 1), kept(0, 3, 3, 2, 1), false},
		"twice and never, the count is 0": {sold(3, 1, 1), kept(0, 3, 1, 1), false},
		"handed out and not noted":        {sold(3, 2, 1), kept(0, 3, 1), false},
		"noted and not handed out":        {sold(3, 1), kept(0, 3, 2, 1), false},
		"tickets are left":                {sold(3, 2), kept(1, 3, 2), false},
		"the count is behind":             {sold(3, 2, 1), kept(1, 3, 2, 1), false},
	} {
		if r := judgeTickets(Guard{}, c.told, c.kept); r.Holds() != c.holds {
			t.Errorf("%s: %v", name, r.Broken)
		}
	}
}

func TestJudgeFlash(t *testing.T) {
	crowd := func(won, late, lost int) rush {
		op := func(outcome history.Outcome, reason string) history.Op {
			return history.Op{Qty: 1, Outcome: outcome, Reason: reason}
		}
		return rush{took: time.Second, ops: slices.Concat(
			slices.Repeat([]history.Op{op(history.OK, history.Sold)}, won),
			slices.Repeat([]history.Op{op(history.Refused, history.SoldOut)}, late),
			slices.Repeat([]history.Op{op(history.Unknown, history.TimedOut)}, lost),
		)}
	}
	for name, c := range map[string]struct {
		guard     string
		rush      rush
		left, row int
		holds     bool
	}{
		"as many as there are":        {"redis-watch", crowd(10, 40, 0), 0, 10, true},
		"one too many":                {"redis-watch", crowd(11, 39, 0), 0, 10, false},
		"one too few":                 {"redis-watch", crowd(9, 41, 0), 1, 10, false},
		"one lost its answer":         {"redis-watch", crowd(10, 39, 1), 0, 10, false},
		"the count is behind":         {"none", crowd(10, 40, 0), 3, 3, false},
		"carried to the row":          {"redis-stock", crowd(10, 40, 0), 0, 0, true},
		"not carried to the row":      {"redis-stock", crowd(10, 40, 0), 0, 2, false},
		"what the row says elsewhere": {"redis-watch", crowd(10, 40, 0), 0, 2, true},
	} {
		if r := judgeFlash(Guard{ID: c.guard}, c.rush, 50, 10, c.left, c.row); r.Holds() != c.holds {
			t.Errorf("%s: %v", name, r.Broken)
		}
	}
}

func TestJudgeGrain(t *testing.T) {
	full := func(sold, left int) *market {
		m := &market{shelf: 2, took: time.Second}
		for i := range goods {
			m.ops[i] = slices.Repeat([]history.Op{{Qty: 1, Outcome: history.OK, Reason: history.Sold}}, 2)
		}
		m.ops[3] = slices.Repeat([]history.Op{{Qty: 1, Outcome: history.OK, Reason: history.Sold}}, sold)
		m.left[3] = left
		return m
	}
	if r := judgeGrain(Guard{}, full(2, 0)); !r.Holds() || r.Figures["per_s"] != 2*goods {
		t.Errorf("all sold: %+v", r)
	}
	if r := judgeGrain(Guard{}, full(3, 0)); r.Holds() {
		t.Error("one piece too many of one product, and another product does not make up for it")
	}
	r := judgeGrain(Guard{}, full(2, 0))
	coarse := full(2, 0)
	coarse.took = 4 * time.Second
	if r.compare(coarse); strconv.FormatFloat(r.Figures["factor"], 'f', 1, 64) != "4.0" {
		t.Errorf("four times as long: %v", r.Figures)
	}
}
