package stepper

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"oversell/api"
	"oversell/lab/rig/rigtest"
	"oversell/view/terminal"
)

// TestSolve plays the recorded solution on a real lab: the update must be lost. It records one strategy
// anew, as if its recording were missing.
func TestSolve(t *testing.T) {
	recorded, err := os.ReadFile(recordedSteps)
	if err != nil {
		t.Fatal(err)
	}
	strategies := map[string][]byte{"none": compressed(t, "{}")}
	if rigtest.IsNightly() {
		strategies["mutex"] = recorded
	}
	for strategy, recordings := range strategies {
		lab := openLab(t, strategy)
		rounds := 0
		g, err := lab.GraphIn(t.Context(), recordings, func() { rounds++ })
		if err != nil {
			t.Fatal(err)
		}
		solution := g.Solution()
		if solution == nil || solution.Switches != 1 || (rounds > 0) != (strategy == "none") {
			t.Fatalf("%s: %+v after %d rounds", strategy, solution, rounds)
		}
		var text strings.Builder
		printed := 0
		err = lab.Solve(t.Context(), *solution, func(round *Round) error {
			round.Print(&text, printed, terminal.Screen{})
			printed = len(round.Log)
			return nil
		})
		if err != nil || !strings.HasPrefix(text.String(), "  1  A  ") || !strings.HasSuffix(text.String(), "\n✗ 2 sold, 9 left of 10: an update was lost.\n") {
			t.Errorf("%s: %v\n%s", strategy, err, text.String())
		}
		if err := lab.Solve(t.Context(), Solution{Moves: []Client{A, B}}, func(*Round) error { return nil }); err == nil {
			t.Errorf("%s: the first two moves lose no update, but Solve returns no error", strategy)
		}
	}
}

func compressed(t *testing.T, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
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
	if stock := round.Stock(); stock.Verdict != api.Holds || stock.Sold != 2 {
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
	lab, err := Open(testLab, strategy)
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
func advance(t *testing.T, round *Round, who Client, step api.Step) {
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
	round.Draw(&text, terminal.Screen{})
	return strings.Count(text.String(), what)
}
