package player

import (
	"errors"
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
	do := func(text string, client int, want api.Step, ended bool) {
		t.Helper()
		plan, err := chaos.Parse(text)
		for _, m := range plan {
			err = errors.Join(err, w.Do(t.Context(), m))
		}
		s, more := w.Look(t.Context(), client)
		at := api.Step("")
		if s.Paused != nil {
			at = s.Paused.Step
		}
		if err = errors.Join(err, more); err != nil || at != want || (s.Op != nil) != ended || at == api.Written && len(s.Paused.Commands) != 1 {
			t.Fatalf("%s: %v, %+v", text, err, s)
		}
	}
	do("A sells at every-step", 0, api.Read, false)
	do("A freezes, A resumes", 0, "", false) // impossible: it resumes nothing
	do("A thaws", 0, api.Read, false)
	do("A resumes, A resumes", 0, api.Written, false)
	do("A resumes", 0, "", true)
	do("B sells at every-step, B freezes", 1, "", false)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	left, err := w.Stock(t.Context())
	if err != nil || left != 8 || len(w.ops) != 2 || w.ops[1].Outcome != history.OK {
		t.Errorf("%d left, %v; %+v", left, err, w.ops)
	}
}
