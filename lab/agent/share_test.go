package agent

import (
	"math"
	"strings"
	"testing"
	"time"

	"oversell/lab/history"
	"oversell/lab/load"
)

func plan(clients, loops int) load.Plan {
	return load.Plan{Target: "http://127.0.0.1:1", Strategy: "redis", Product: 1, Qty: 1, Clients: clients, Loops: loops, Wait: time.Second, Seed: 7}
}

func TestDivide(t *testing.T) {
	for _, tt := range []struct {
		clients, agents int
		rate            load.Rate
		want            []int
	}{
		{21, 2, 0, []int{11, 10}},
		{3, 3, 0, []int{1, 1, 1}},
		{100, 3, 200, []int{34, 33, 33}},
		{5, 1, 10, []int{5}},
	} {
		whole := plan(tt.clients, 20)
		whole.Rate = tt.rate
		shares, err := divide(whole, tt.agents)
		if err != nil || len(shares) != tt.agents {
			t.Fatalf("%+v: %d shares, %v", tt, len(shares), err)
		}
		clients, rate := 0, 0.0
		for i, s := range shares {
			if s.plan.Clients != tt.want[i] || s.first != clients || s.plan.Loops != 20 {
				t.Errorf("%+v: share %d is %+v", tt, i, s)
			}
			clients += s.plan.Clients
			rate += float64(s.plan.Rate)
			if tt.rate > 0 {
				// All shares take the same time.
				if got, want := float64(s.plan.Clients)/float64(s.plan.Rate), float64(tt.clients)/float64(tt.rate); math.Abs(got-want) > 1e-9 {
					t.Errorf("%+v: share %d takes %v of the time", tt, i, got/want)
				}
			}
		}
		if clients != tt.clients || math.Abs(rate-float64(tt.rate)) > 1e-9 {
			t.Errorf("%+v: the sum is %d clients at %v/s", tt, clients, rate)
		}
	}
}

// TestOpenLoopsAreDueInTurn checks that the requests of two agents are due at even times.
func TestOpenLoopsAreDueInTurn(t *testing.T) {
	whole := plan(4, 5)
	whole.Rate = 100
	shares, err := divide(whole, 2)
	if err != nil || shares[0].phase != 0 || shares[1].phase != 10*time.Millisecond || shares[1].plan.Rate != 50 {
		t.Errorf("%+v, %v", shares, err)
	}
}

func TestDivideRejects(t *testing.T) {
	if _, err := divide(plan(1, 5), 2); err == nil || !strings.Contains(err.Error(), "at least the number of agents, 2") {
		t.Errorf("one client for two agents: %v", err)
	}
	slow := plan(2, 5)
	slow.Rate = load.Rate(1) / 60
	if _, err := divide(slow, 2); err == nil || !strings.Contains(err.Error(), "rate") {
		t.Errorf("a rate of 1/m for two agents: %v", err)
	}
}

func TestEstimateUsesTheShortestRoundTrip(t *testing.T) {
	const ms = time.Millisecond
	// The agent's clock is 100 ms ahead. Delays in one direction falsify the two long samples.
	got := estimate([]sample{
		{sent: 0, received: 50 * ms, read: 149 * ms, wall: 24 * ms},
		{sent: 60 * ms, received: 62 * ms, read: 161 * ms, wall: 3 * ms},
		{sent: 70 * ms, received: 90 * ms, read: 171 * ms, wall: -9 * ms},
	})
	if want := (clock{offset: 100 * ms, wall: 3 * ms, within: ms}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got.agent(5*ms) != 105*ms || got.coordinator(105*ms) != 5*ms {
		t.Errorf("%v and %v", got.agent(5*ms), got.coordinator(105*ms))
	}
}

// TestMergeIsOnOneClock joins the records of two agents, of which the second began 30 ms later.
func TestMergeIsOnOneClock(t *testing.T) {
	const ms = time.Millisecond
	shares, err := divide(plan(3, 1), 2)
	if err != nil {
		t.Fatal(err)
	}
	c := &Coordinator{agents: []*remote{
		{address: "a", clock: clock{offset: time.Hour, within: ms}},
		{address: "b", clock: clock{offset: -time.Hour, within: 2 * ms}},
	}}
	start := time.Minute
	m := newMerge(c, shares, nil)
	m.add(0, answer{Ops: []history.Op{{Client: 1, Call: 1 * ms, Return: 9 * ms}}})
	m.add(0, answer{Ops: []history.Op{{Client: 2, Call: 40 * ms, Return: 50 * ms}}})
	m.add(1, answer{Ops: []history.Op{{Client: 1, Call: 2 * ms, Return: 5 * ms}}})
	m.add(0, answer{Done: &done{Began: start + time.Hour}})
	m.add(1, answer{Done: &done{Began: start - time.Hour + 30*ms}})
	h := m.history(start)
	want := []history.Op{{Client: 1, Call: 1 * ms, Return: 9 * ms}, {Client: 3, Call: 32 * ms, Return: 35 * ms}, {Client: 2, Call: 40 * ms, Return: 50 * ms}}
	if len(h.Ops) != len(want) || h.Missing != 0 {
		t.Fatalf("%+v", h)
	}
	for i := range want {
		if h.Ops[i] != want[i] {
			t.Errorf("request %d is %+v, want %+v", i, h.Ops[i], want[i])
		}
	}
	if a, b := h.Agents[0], h.Agents[1]; a.Ops != 2 || a.Late != 0 || b.Ops != 1 || b.Late != 30*ms || b.Error != 2*ms {
		t.Errorf("%+v, %+v", a, b)
	}
}

// TestLostAgentLeavesMissingRequests checks that a lost agent's records are not used: without its
// last line, its start is not known.
func TestLostAgentLeavesMissingRequests(t *testing.T) {
	shares, err := divide(plan(4, 10), 2)
	if err != nil {
		t.Fatal(err)
	}
	m := newMerge(&Coordinator{agents: []*remote{{address: "a"}, {address: "b"}}}, shares, nil)
	m.add(0, answer{Ops: make([]history.Op, 20)})
	m.add(0, answer{Done: &done{}})
	m.add(1, answer{Ops: make([]history.Op, 3)})
	if h := m.history(0); h.Missing != 20 || len(h.Ops) != 20 || h.Agents[1].Ops != 0 {
		t.Errorf("%d missing, %d recorded, %+v", h.Missing, len(h.Ops), h.Agents)
	}
}

func TestAddresses(t *testing.T) {
	for text, ok := range map[string]bool{
		"127.0.0.1:8400": true, "[::1]:8400": true, "a:1,b:1": true,
		"127.0.0.1": false, ":8400": false, "a:": false, "a:1,a:1": false, "http://a:1": false,
	} {
		if err := Addresses(strings.Split(text, ",")); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}
