package experiment

import (
	"errors"
	"testing"

	"oversell/api"
	"oversell/lab/player"
	"oversell/lab/rig"
)

// leftOut counts the experiments that were left out.
type leftOut struct {
	silent
	n int
}

func (l *leftOut) LeftOut(Experiment, error) { l.n++ }

// TestLeftOut runs experiments whose servers are not installed. A plan of several experiments
// leaves out such an experiment and reports it once. A plan of a single experiment fails.
func TestLeftOut(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // as if no Redis were installed
	bed := &player.Testbed{Rig: &rig.Rig{}, Cards: []api.Card{{ID: "none"}}}
	missing := func(hazard api.Hazard) Experiment {
		return Experiment{Hazard: hazard, Applies: always, Lab: func(rig.Config) rig.Config { return rig.Config{Redis: 1} }}
	}
	w := &leftOut{}
	err := Selection{Seeds: 3}.perform(t.Context(), bed, []Experiment{missing("flood"), missing("fire")}, &ResultStore{}, w)
	if !errors.Is(err, ErrLeftOut) || !errors.Is(err, rig.ErrMissing) || w.n != 2 {
		t.Errorf("two of two: %v, reported %d times", err, w.n)
	}
	w = &leftOut{}
	err = Selection{Seeds: 3}.perform(t.Context(), bed, []Experiment{missing("flood")}, &ResultStore{}, w)
	if errors.Is(err, ErrLeftOut) || !errors.Is(err, rig.ErrMissing) || w.n != 0 {
		t.Errorf("the only one: %v, left out %d", err, w.n)
	}
}

// TestRandomPlansAsHazard checks that a plan can name the random plans, which are a square of the page.
func TestRandomPlansAsHazard(t *testing.T) {
	chosen, err := Selection{Hazards: []api.Hazard{Chaos}}.choose([]api.Card{{ID: "none"}})
	if err != nil || len(chosen) != 1 || chosen[0].Hazard != Chaos {
		t.Error(chosen, err)
	}
}
