package stepper

import (
	"context"
	"errors"
	"slices"
)

// The limits of the search. Few races need more than two interruptions.
const (
	maxInterruptions = 2
	maxSchedules     = 100
)

// schedule names the client that continues, step by step. After its end there are no more
// interruptions: a client continues up to its answer, or until it has to wait.
type schedule []Client

type move struct {
	client Client
	free   bool // the other client could have continued instead
}

type played struct {
	moves []move
	log   []Entry
	lost  bool
	end   Words // the round's sentence
}

// Solution is the result of the search.
type Solution struct {
	// Lost is true if the search found a way to lose an update.
	Lost bool
	// Interruptions is the number of interruptions in that run, or the largest number tried.
	Interruptions int
	Tried         int // number of schedules, each in a run of its own
	// Log and Sentence are of the run that lost the update.
	Log      []Entry
	Sentence Words
}

// Solve searches for the shortest interleaving that loses an update. That is the one with the
// fewest interruptions: steps at which a client could have continued and the other one did
// instead. It is a breadth-first search over real runs, and calls tried after each. No other
// round may be open.
func (l *Lab) Solve(ctx context.Context, tried func()) (Solution, error) {
	return search(func(first schedule) (played, error) { return l.play(ctx, first) }, tried)
}

// search tries schedules with 0 interruptions, 1, and so on. A begins, as both do the same.
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
				s.Lost, s.Log, s.Sentence = true, run.log, run.end
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

// interrupted returns a schedule for each point at or after from where a client took another step
// although the other client could have continued. The schedule interrupts the run there.
func interrupted(moves []move, from int) []schedule {
	var all []schedule
	for i := max(1, from); i < len(moves); i++ {
		if client := moves[i].client; moves[i].free && moves[i-1].client == client {
			var s schedule
			for _, m := range moves[:i] {
				s = append(s, m.client)
			}
			all = append(all, append(s, client.other()))
		}
	}
	return all
}

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
	p.log, p.end, p.lost = slices.Clone(r.Log), r.Sentence(), r.Stock().Lost() > 0
	return p, nil
}

// next returns the client that continues: the one whose turn it is, if it can. If neither
// can, it is the one that waits for the lock.
func next(turn Client, freeA, freeB, ended bool) Client {
	free := [...]bool{A: freeA, B: freeB}
	if !free[turn] && (free[turn.other()] || ended) {
		return turn.other()
	}
	return turn
}
