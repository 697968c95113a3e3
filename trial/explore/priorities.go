package explore

import (
	"context"
	"math"
	"math/rand/v2"
	"runtime"

	"golang.org/x/sync/errgroup"
)

// Random is a number of schedules in which random priorities choose each move, where there are too many to run all of them.
// The move with the highest priority is next: each client has one, and so has each fault of each client. At Depth - 1
// random steps, whatever moves there falls behind all others.
//
// A bug of depth d is one that appears whenever d moves come in a certain order. Each schedule shows it with at least the
// probability of Guarantee (Burckhardt, Kothari, Musuvathi, Nagarakatte, "A Randomized Scheduler with Probabilistic
// Guarantees of Finding Bugs", 2010).
type Random struct {
	Schedules int   `json:"schedules"`
	Depth     int   `json:"depth"`
	Seed      int64 `json:"seed"`
	// Steps is the number of moves of the longest schedule, and Actors the largest number of priorities: results.
	Steps  int `json:"steps,omitempty"`
	Actors int `json:"actors,omitempty"`
}

// Guarantee returns the least probability with which one schedule shows a bug of the depth.
func (r Random) Guarantee() float64 {
	return 1 / (float64(max(1, r.Actors)) * math.Pow(float64(max(1, r.Steps)), float64(r.Depth-1)))
}

// actor is what has a priority.
type actor struct {
	kind   Kind
	client int
}

func actorOf(m move) actor {
	switch m.kind {
	case Begin, Deliver, Resume: // what a client does by itself
		return actor{Deliver, m.client}
	}
	return actor{m.kind, m.client}
}

// priorities chooses the moves of one schedule.
type priorities struct {
	*rand.Rand
	of     map[actor]float64
	falls  map[int]bool // steps at which the chosen actor falls behind
	at     int
	lowest float64
}

func newPriorities(seed int64, number, falls, steps int) *priorities {
	p := &priorities{Rand: rand.New(rand.NewPCG(uint64(seed), uint64(number))), of: map[actor]float64{}, falls: map[int]bool{}} //nolint:gosec // not a secret
	for range falls {
		p.falls[p.IntN(max(1, steps))] = true
	}
	return p
}

func (p *priorities) choose(moves []move) (chosen int) {
	for i, m := range moves {
		a := actorOf(m)
		if _, has := p.of[a]; !has {
			p.of[a] = p.Float64()
		}
		if p.of[a] > p.of[actorOf(moves[chosen])] {
			chosen = i
		}
	}
	if p.falls[p.at] {
		p.lowest--
		p.of[actorOf(moves[chosen])] = p.lowest
		delete(p.falls, p.at)
		return p.choose(moves)
	}
	p.at++
	return chosen
}

// probes is the number of schedules that run first, one after the other: they show how long a schedule is.
const probes = 10

// random runs the schedules of the scope's Random, each from the beginning. It gives up at the first error.
func (s *search) random(ctx context.Context, r *runner) error {
	drawn, steps := new(*s.result.Random), 0
	s.result.Random = drawn
	once := func(number, falls int) error {
		p := newPriorities(drawn.Seed, number, falls, steps)
		b := &branch{full: true, pick: p.choose}
		err := s.runOne(b, r)
		s.mu.Lock()
		defer s.mu.Unlock()
		drawn.Steps, drawn.Actors = max(drawn.Steps, len(b.path)), max(drawn.Actors, len(p.of))
		return err
	}
	for number := 0; number < min(probes, drawn.Schedules) && ctx.Err() == nil; number++ {
		if err := once(number, 0); err != nil {
			return err
		}
	}
	steps = drawn.Steps
	workers, ctx := errgroup.WithContext(ctx)
	workers.SetLimit(runtime.GOMAXPROCS(0))
	for number := probes; number < drawn.Schedules && ctx.Err() == nil; number++ {
		workers.Go(func() error { return once(number, drawn.Depth-1) })
	}
	return workers.Wait()
}
