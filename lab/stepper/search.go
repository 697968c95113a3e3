package stepper

import (
	"context"
	"errors"
	"slices"
)

// The search ends here. Few races need more than two interruptions, and a class has
// not got all day.
const (
	maxInterruptions = 2
	maxSchedules     = 100
)

// schedule is who goes on, step by step. After its end nobody is interrupted any more:
// who has the turn keeps it, up to its answer, or until it has to wait.
type schedule []Who

// move is one step of a played schedule.
type move struct {
	who Who
	// free: the other one could have gone on instead.
	free bool
}

// played is a schedule's real run, to its end.
type played struct {
	moves []move
	lines []Entry
	lost  bool
	end   Words // the round's sentence
}

// Solution is what the search found.
type Solution struct {
	// Lost: it found a way to lose an update, with so many interruptions.
	Lost          bool
	Interruptions int // with which it did it; or up to which it did not
	Tried         int // schedules, each by a run of its own
	// Lines and Sentence are of the run that lost the update.
	Lines    []Entry
	Sentence Words
}

// Solve looks for the shortest interleaving that loses an update: the one with the
// fewest interruptions, where a client could have gone on and the other one did instead.
// It is a search in breadth over real runs; tried is called after each. It needs the
// replicas for itself: close other rounds first.
func (l *Lab) Solve(ctx context.Context, tried func()) (Solution, error) {
	return search(func(first schedule) (played, error) { return l.play(ctx, first) }, tried)
}

// search tries all schedules without interruption, which is one, then all with one, and
// so on. Both clients do the same, so it does not matter who begins: A does.
func search(play func(schedule) (played, error), tried func()) (Solution, error) {
	var s Solution
	level := []schedule{nil}
	for s.Interruptions = 0; ; s.Interruptions++ {
		var next []schedule
		for _, first := range level {
			if s.Tried == maxSchedules {
				return s, nil
			}
			run, err := play(first)
			if err != nil {
				return s, err
			}
			s.Tried++
			tried()
			if run.lost {
				s.Lost, s.Lines, s.Sentence = true, run.lines, run.end
				return s, nil
			}
			next = append(next, interrupted(run.moves, len(first))...)
		}
		if s.Interruptions == maxInterruptions || len(next) == 0 {
			return s, nil
		}
		level = next
	}
}

// interrupted are the schedules that follow the run up to a point, at or after from, at
// which its client could have gone on, and then let the other one.
func interrupted(moves []move, from int) []schedule {
	var all []schedule
	for i := max(1, from); i < len(moves); i++ {
		if who := moves[i].who; moves[i].free && moves[i-1].who == who {
			var s schedule
			for _, m := range moves[:i] {
				s = append(s, m.who)
			}
			all = append(all, append(s, who.other()))
		}
	}
	return all
}

// play runs a round by the schedule, and then to its end.
func (l *Lab) play(ctx context.Context, first schedule) (p played, err error) {
	r, err := l.Begin(ctx)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	turn := A
	for !r.Over() {
		if n := len(p.moves); n < len(first) {
			turn = first[n]
		}
		turn = next(turn, r.free(A), r.free(B), r.State(turn) == Ended)
		if r.free(turn) {
			p.moves = append(p.moves, move{turn, r.free(turn.other())})
		}
		if err := r.Go(ctx, turn); err != nil {
			return p, err
		}
	}
	p.lines, p.end, p.lost = slices.Clone(r.Lines), r.Sentence(), r.Stock().Lost() > 0
	return p, nil
}

// next is who goes on: the one whose turn it is, if it can. If neither can, one waits
// and is waited for.
func next(turn Who, freeA, freeB, ended bool) Who {
	free := [...]bool{A: freeA, B: freeB}
	if !free[turn] && (free[turn.other()] || ended) {
		return turn.other()
	}
	return turn
}
