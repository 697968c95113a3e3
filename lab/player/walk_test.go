package player

import (
	"testing"

	"oversell/api"
	"oversell/lab/chaos"
	"oversell/lab/history"
)

// TestStepByStep carries out one move after the other. While the process of A is frozen, A is at no step. Close thaws it.
func TestStepByStep(t *testing.T) {
	w, err := Unrecorded(servers).Walk(t.Context(), "none", 10, 0)
	if err != nil {
		t.Fatal(err)
	}
	do := func(text string, client int, want State, step api.Step) (s Sale) {
		t.Helper()
		plan, err := chaos.Parse(text)
		for _, m := range plan {
			if err == nil {
				err = w.Do(t.Context(), m)
			}
		}
		if err == nil {
			s, err = w.Look(t.Context(), client)
		}
		if err != nil || s.State != want || s.Paused.Step != step {
			t.Fatalf("%s: %v, %+v", text, err, s)
		}
		return s
	}
	if s := do("A sells at every-step", 0, Stopped, api.Read); len(s.Paused.Commands) != 1 {
		t.Errorf("%q, want the SELECT", s.Paused.Commands)
	}
	do("A freezes, A resumes", 0, Waiting, "") // impossible: it resumes nothing
	do("A thaws", 0, Stopped, api.Read)
	do("A resumes, A resumes", 0, Stopped, api.Written)
	do("A resumes", 0, Ended, "")
	do("B sells at every-step, B freezes", 1, Waiting, "")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	left, err := w.Stock(t.Context())
	if err != nil || left != 8 || len(w.ops) != 2 || w.ops[1].Outcome != history.OK {
		t.Errorf("%d left, %v; %+v", left, err, w.ops)
	}
}
