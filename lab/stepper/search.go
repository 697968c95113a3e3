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

// schedule lists the client that continues at each step of a run, from the first step on. After its
// end no client is interrupted: a client continues up to its answer, or until it has to wait.
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
	// Interruptions is the number in the run that lost the update, else the largest number tried.
	Interruptions int
	Tried         int // number of schedules, each in a run of its own
	// Log and Sentence are of the run that lost the update.
	Log      []Entry
	Sentence Words
}

// Solve searches for the interleaving that loses an update with the fewest interruptions. An
// interruption is a step at which a client could have continued, and the other client continued
// instead. Solve is a breadth-first search over real runs, and calls tried after each run. No other
// round may be open.
func (l *Lab) Solve(ctx context.Context, tried func()) (Solution, error) {
	return search(func(first schedule) (played, error) { return l.play(ctx, first) }, tried)
}

// search tries 0 interruptions, then 1, and so on. A begins, because both clients do the same.
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

// interrupted returns schedules with one more interruption than these moves, at an index of at
// least from. At this index the other client continues, which could have continued in the run too.
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

// next returns turn if it is free to continue, else the other client if that client is free. If
// neither client is free, it returns a client that waits. ended is true if turn has its answer.
func next(turn Client, freeA, freeB, ended bool) Client {
	free := [...]bool{A: freeA, B: freeB}
	if !free[turn] && (free[turn.other()] || ended) {
		return turn.other()
	}
	return turn
}
