package cli_test

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"oversell/lab/check"
	"oversell/lab/stepper"
	"oversell/lab/terminal"
)

// TestStepCommand runs the command step on the strategy none until an update is lost. The
// keystrokes come from a pipe instead of a terminal.
func TestStepCommand(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), built(), "step", "none")
	cmd.Stdin = strings.NewReader("a\nb\nx\naaa\nbbb\na\n r q a")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	screens := strings.Split(string(out), "none: A and B buy one piece each; the stock is 10\n")
	// There is a screen at the start, one for each of eight moves of A or B, and one for the key r.
	if len(screens)-1 != 1+8+1 {
		t.Fatalf("%d screens, want 10:\n%s", len(screens)-1, out)
	}
	for i, want := range map[int]string{
		3:  "> read        has read 10               > read        has read 10\n",
		6:  "    answer: sold, 9 left\n\n  stock in the database: 9\n",
		9:  "  ✗ 2 sold, 9 left of 10: an update was lost.\n",
		10: "> has sent no request yet               > has sent no request yet\n\n  stock in the database: 10\n",
	} {
		if !strings.Contains(screens[i], want) {
			t.Errorf("screen %d lacks %q:\n%s", i, want, screens[i])
		}
	}
	for _, want := range []string{"'x' is not a key", "A has its answer; r starts again"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is missing:\n%s", want, out)
		}
	}
}

func TestStepBadCommandLine(t *testing.T) {
	t.Parallel()
	binary := built()
	for _, args := range [][]string{{"step"}, {"step", "nonsense"}, {"step", "none", "mutex"}, {"step", "none", "--pace", "slow"}, {"step", "none", "--lease", "1ms"}} {
		cmd := exec.CommandContext(t.Context(), binary, args...)
		out, _ := cmd.CombinedOutput()
		if status := cmd.ProcessState.ExitCode(); status != 2 || !strings.Contains(string(out), "oversell: ") {
			t.Errorf("%v: exit status %d, %s", args, status, out)
		}
	}
}

// TestStepSolution searches for a schedule (an order of A's and B's steps) that loses an update,
// and checks the printed result.
func TestStepSolution(t *testing.T) {
	for strategy, lost := range map[string]bool{"none": true, "mutex": true, "redis": false} {
		lab := steps(t, strategy)
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

// TestStepWaitsForTheLock checks that, with the strategy redis, client B waits for A's lock and
// continues after A has released it.
func TestStepWaitsForTheLock(t *testing.T) {
	round, err := steps(t, "redis").Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer closeRound(t, round)
	until(t, round, stepper.A, "granted")
	until(t, round, stepper.B, "asked")
	goOn(t, round, stepper.B)
	if round.State(stepper.B) != stepper.Waiting || screen(t, round, "waits for the lock") == 0 {
		t.Fatalf("B does not wait: %+v", round.Log)
	}
	until(t, round, stepper.A, "written")
	if round.State(stepper.B) != stepper.Waiting {
		t.Fatalf("B does not wait any more while A has the lock: %+v", round.Log)
	}
	until(t, round, stepper.A, "released")
	eventually(t, "B has the lock", func() (bool, string) {
		_, err := round.Look(t.Context())
		return err == nil && round.State(stepper.B) == stepper.Stopped, ""
	})
	for !round.Over() {
		goOn(t, round, stepper.A)
		goOn(t, round, stepper.B)
	}
	if stock := round.Stock(); stock.Verdict != check.Holds || stock.Sold != 2 {
		t.Errorf("%+v", stock)
	}
	if screen(t, round, "has read 9") != 1 || screen(t, round, "2 sold, 8 left of 10: no update was lost.") != 1 {
		t.Errorf("the end is missing: %+v", round.Log)
	}
}

// TestStepCloseResumes checks that no request stays paused after the end of a session.
func TestStepCloseResumes(t *testing.T) {
	lab := steps(t, "redis")
	ctx, interrupt := context.WithCancel(t.Context())
	round, err := lab.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	until(t, round, stepper.A, "granted")
	until(t, round, stepper.B, "asked")
	interrupt()
	closeRound(t, round)
	restock(t, 10)
	if r := buy(t, "redis"); r.Outcome != "sold" {
		t.Errorf("afterwards: %+v", r)
	}
	round, err = lab.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer closeRound(t, round)
	until(t, round, stepper.A, "asked")
}

func steps(t *testing.T, strategy string) *stepper.Lab {
	t.Helper()
	lab, err := stepper.Open(testLab.Addresses(), strategy)
	if err != nil {
		t.Fatal(err)
	}
	return lab
}

func closeRound(t *testing.T, round *stepper.Round) {
	t.Helper()
	if err := round.Close(); err != nil {
		t.Error(err)
	}
}

func goOn(t *testing.T, round *stepper.Round, who stepper.Client) {
	t.Helper()
	if err := round.Go(t.Context(), who); err != nil {
		t.Fatal(err)
	}
}

// until moves the client from step to step, until the client has reached the given step.
func until(t *testing.T, round *stepper.Round, who stepper.Client, step string) {
	t.Helper()
	for {
		goOn(t, round, who)
		for _, l := range round.Log {
			if l.Client == who && l.Step == step {
				return
			}
		}
		if round.State(who) == stepper.Ended {
			t.Fatalf("%v ended before step %s: %+v", who, step, round.Log)
		}
	}
}

// screen returns how often the text what occurs in the drawing of the round.
func screen(t *testing.T, round *stepper.Round, what string) int {
	t.Helper()
	var text strings.Builder
	if err := round.Draw(&text, terminal.Screen{}); err != nil {
		t.Fatal(err)
	}
	return strings.Count(text.String(), what)
}
