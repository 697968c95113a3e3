package stepper

import (
	"context"
	"strings"
	"testing"
	"time"

	"oversell/lab/check"
	"oversell/lab/rig/rigtest"
	"oversell/lab/terminal"
)

// TestSolve searches for a schedule (an order of A's and B's steps) that loses an update,
// and checks the printed result.
func TestSolve(t *testing.T) {
	strategies := map[string]bool{"none": true, "redis": false}
	if rigtest.IsNightly() {
		strategies["mutex"] = true
	}
	for strategy, lost := range strategies {
		lab := openLab(t, strategy)
		tried := 0
		s, err := lab.Solve(t.Context(), func() { tried++ })
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := s.Print(&text, strategy, terminal.Screen{}, func() {}); err != nil {
			t.Fatal(err)
		}
		switch {
		case s.Lost != lost || s.Tried != tried:
			t.Errorf("%s: lost %v after %d schedules, %d reported", strategy, s.Lost, s.Tried, tried)
		case lost && (s.Interruptions != 1 || !strings.HasSuffix(text.String(), "\n✗ 2 sold, 9 left of 10: an update was lost.\n")):
			t.Errorf("%s: %d interruptions\n%s", strategy, s.Interruptions, text.String())
		case !lost && (s.Tried < 10 || !strings.HasPrefix(text.String(), "✓ redis: no update was lost in ")):
			t.Errorf("%s: %d schedules\n%s", strategy, s.Tried, text.String())
		}
	}
}

// TestWaitForTheLock checks that, with the strategy redis, client B waits for A's lock and
// continues after A has released it.
func TestWaitForTheLock(t *testing.T) {
	round, err := openLab(t, "redis").Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer closeRound(t, round)
	advance(t, round, A, "granted")
	advance(t, round, B, "asked")
	forward(t, round, B)
	if round.State(B) != Waiting || occurrences(t, round, "waits for the lock") == 0 {
		t.Fatalf("B does not wait: %+v", round.Log)
	}
	advance(t, round, A, "written")
	if round.State(B) != Waiting {
		t.Fatalf("B does not wait any more while A has the lock: %+v", round.Log)
	}
	advance(t, round, A, "released")
	for until := time.Now().Add(5 * time.Minute); round.State(B) != Stopped; time.Sleep(50 * time.Millisecond) {
		if _, err := round.Look(t.Context()); err != nil || time.Now().After(until) {
			t.Fatalf("B does not have the lock: %v, %+v", err, round.Log)
		}
	}
	for !round.Over() {
		forward(t, round, A)
		forward(t, round, B)
	}
	if stock := round.Stock(); stock.Verdict != check.Holds || stock.Sold != 2 {
		t.Errorf("%+v", stock)
	}
	if occurrences(t, round, "has read 9") != 1 || occurrences(t, round, "2 sold, 8 left of 10: no update was lost.") != 1 {
		t.Errorf("the end is missing: %+v", round.Log)
	}
}

// TestCloseResumes checks that no request stays paused after the end of a session.
func TestCloseResumes(t *testing.T) {
	lab := openLab(t, "redis")
	ctx, interrupt := context.WithCancel(t.Context())
	round, err := lab.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	advance(t, round, A, "granted")
	advance(t, round, B, "asked")
	interrupt()
	closeRound(t, round)
	round, err = lab.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer closeRound(t, round)
	advance(t, round, A, "granted")
}

func openLab(t *testing.T, strategy string) *Lab {
	t.Helper()
	lab, err := Open(testLab.Addresses(), strategy)
	if err != nil {
		t.Fatal(err)
	}
	return lab
}

func closeRound(t *testing.T, round *Round) {
	t.Helper()
	if err := round.Close(); err != nil {
		t.Error(err)
	}
}

func forward(t *testing.T, round *Round, who Client) {
	t.Helper()
	if err := round.Go(t.Context(), who); err != nil {
		t.Fatal(err)
	}
}

// advance moves the client from step to step, until the client has reached the given step.
func advance(t *testing.T, round *Round, who Client, step string) {
	t.Helper()
	for {
		forward(t, round, who)
		for _, l := range round.Log {
			if l.Client == who && l.Step == step {
				return
			}
		}
		if round.State(who) == Ended {
			t.Fatalf("%v ended before step %s: %+v", who, step, round.Log)
		}
	}
}

// occurrences returns how often the text what occurs in the drawing of the round.
func occurrences(t *testing.T, round *Round, what string) int {
	t.Helper()
	var text strings.Builder
	if err := round.Draw(&text, terminal.Screen{}); err != nil {
		t.Fatal(err)
	}
	return strings.Count(text.String(), what)
}
