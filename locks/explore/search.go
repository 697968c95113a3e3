// Package explore enumerates the schedules of a strategy: all orders in which the messages of its
// clients can reach the servers, with a bounded number of faults. It runs the code of the strategy
// and its scripts against servers in memory, with a clock of its own (testing/synctest). The strategies
// of MySQL run on a real server, see mysqlExecutor.
package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// Trial is a strategy, and how far a search goes.
type Trial struct {
	Strategy string `json:"strategy"`
	Bounds   Bounds `json:"bounds"`
	// Full runs also the schedules that differ from another one only in the order of independent moves.
	Full bool `json:"full,omitempty"`
	// MySQL is the data source name of a real MySQL or MariaDB. Without it, all servers are in memory.
	MySQL string `json:"-"`
}

// Result is what a search has found.
type Result struct {
	Trial
	Schedules int  `json:"schedules"`
	Oversold  int  `json:"oversold"`    // schedules that lose an update
	Stalled   int  `json:"stalled"`     // schedules in which a client waits in vain for the lock
	Aborted   int  `json:"aborted"`     // schedules in which a client gives up, and takes nothing
	Late      int  `json:"late"`        // schedules in which a client waits until a lease ends
	Two       int  `json:"two_holders"` // schedules in which two clients hold the lock at the same time
	Complete  bool `json:"complete"`    // these are all schedules within the bounds
	// Harm is the worst harm of any schedule, or empty. Shortest is the shortest schedule that does this
	// harm, the first of several, or nil.
	Harm     Harm   `json:"harm,omitempty"`
	Shortest []Step `json:"shortest,omitempty"`
	// Outcomes counts the schedules by their outcome.
	Outcomes map[string]int `json:"-"`
	// Redundant counts the schedules that were not finished, because another one has the same effect.
	Redundant int `json:"-"`
}

// Step is one choice of a schedule. Token is short, such as A, lose-B.2 or time.
type Step struct {
	Token string `json:"token"`
	Text  string `json:"text"`
	// Client and Server are those with a part in the step, or empty.
	Client string `json:"-"`
	Server string `json:"-"`
}

// Search enumerates all schedules within the bounds, until ctx ends. Schedules that differ only in
// the order of independent moves have the same effect, so it runs one of them (sleep sets: Godefroid,
// "Partial-Order Methods for the Verification of Concurrent Systems", 1996). It calls progress after
// each schedule.
func Search(ctx context.Context, t Trial, progress func(Result)) (Result, error) {
	return newSearch(t, progress).run(ctx)
}

func (s *search) run(ctx context.Context) (Result, error) {
	r, err := openExecutor(s.result.Trial)
	if err != nil {
		return Result{Trial: s.result.Trial}, err
	}
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() { s.work(ctx, r) })
	}
	workers.Wait()
	s.err = cmp.Or(s.err, r.Close())
	s.result.Complete = s.err == nil && ctx.Err() == nil
	return s.result, s.err
}

// search is what the workers share.
type search struct {
	progress func(Result)

	mu       sync.Mutex
	changed  sync.Cond
	branches []*branch // that no worker has taken yet
	busy     int       // number of workers that have a branch
	result   Result
	first    []int // the choices of result.Shortest
	err      error
	tree     *prefixes // nil if nobody asked for it
}

func newSearch(t Trial, progress func(Result)) *search {
	s := &search{progress: progress, result: Result{Trial: t, Outcomes: map[string]int{}}, branches: []*branch{{full: t.Full}}}
	s.changed.L = &s.mu
	return s
}

// work explores branches until there is none left.
func (s *search) work(ctx context.Context, r executor) {
	defer context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changed.Broadcast()
	})()
	for b := s.take(ctx); b != nil; b = s.take(ctx) {
		for more := true; more && ctx.Err() == nil; {
			b.depth = 0
			outcome, finished, err := r.run(b.choose)
			if b.diverged != nil {
				err = errors.Join(err, b.diverged)
			}
			more = s.note(b, outcome, finished, err) && b.next()
		}
		s.mu.Lock()
		s.busy--
		s.changed.Broadcast()
		s.mu.Unlock()
	}
}

// take returns a branch, or nil if no worker has any left.
func (s *search) take(ctx context.Context) *branch {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.branches) == 0 && s.busy > 0 && ctx.Err() == nil && s.err == nil {
		s.changed.Wait()
	}
	if len(s.branches) == 0 || ctx.Err() != nil || s.err != nil {
		return nil
	}
	b := s.branches[0]
	s.branches = s.branches[1:]
	s.busy++
	return b
}

// note adds a schedule to the result, and leaves a part of the branch to another worker that has
// none. It returns false if the search has failed.
func (s *search) note(b *branch, o Outcome, finished bool, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil:
		s.err = cmp.Or(s.err, fmt.Errorf("explore %s: %w", s.result.Strategy, err))
	case finished:
		s.result.add(o)
		s.compare(o, b.path)
		s.tree.add(b.path, o)
	default:
		s.result.Redundant++
	}
	if s.err != nil {
		return false
	}
	if s.progress != nil {
		s.progress(s.result)
	}
	if len(s.branches) == 0 && s.busy < runtime.GOMAXPROCS(0) {
		if half := b.split(); half != nil {
			s.branches = append(s.branches, half)
			s.changed.Broadcast()
		}
	}
	return true
}

// branch is a part of all schedules: those that begin with the choices of the first nodes of path.
// Each schedule runs from the beginning.
type branch struct {
	full     bool
	path     []*node
	depth    int
	diverged error
}

// node is a state on the path.
type node struct {
	moves  []move
	chosen int
	end    int    // the moves from here on belong to another branch
	asleep []move // in this state, these moves lead to nothing new
	// batch is the first of the messages that one client has sent at the same time to several Redis,
	// if nothing else can happen that changes data. Nothing but that client depends on their order.
	batch int
	twins []int // see twins
}

func (b *branch) choose(moves []move) int {
	b.depth++
	if b.depth <= len(b.path) {
		n := b.path[b.depth-1]
		if !slices.EqualFunc(moves, n.moves, move.same) {
			b.diverged = fmt.Errorf("step %d of a repeated schedule had the choice %s, and now it has %s", b.depth, texts(n.moves), texts(moves))
			return -1
		}
		n.moves = moves // they get the effects
		return n.chosen
	}
	n := &node{moves: moves, chosen: -1, end: len(moves), batch: -1}
	if !b.full {
		n.batch, n.twins = batch(moves), twins(b.path, moves)
		b.check(moves)
		if b.depth > 1 {
			n.asleep = b.path[b.depth-2].sleepAfter()
		}
	}
	n.next()
	b.path = append(b.path, n)
	return n.chosen
}

// batch returns the index of the first message if all messages are of one client, each to another
// Redis, and if no fault can happen. Otherwise it returns -1.
func batch(moves []move) int {
	first, to := -1, map[string]bool{}
	for i, m := range moves {
		switch {
		case strings.HasPrefix(m.token, "resume-"):
			continue
		case m.sender == "" || !strings.HasPrefix(m.to, "redis-") || to[m.to]:
			return -1
		case first < 0:
			first = i
		case m.sender != moves[first].sender:
			return -1
		}
		to[m.to] = true
	}
	return first
}

// check ends a batch if its client sends something before all answers have arrived, or if a message
// wakes another client. Then the order does matter, so all orders must run.
func (b *branch) check(moves []move) {
	for i := len(b.path) - 1; i >= 0; i-- {
		n := b.path[i]
		if n.batch < 0 || n.chosen != n.batch {
			return
		}
		sent := func(m move) bool { return m.sender != "" && !slices.ContainsFunc(n.moves, m.same) }
		done := !slices.ContainsFunc(moves, func(m move) bool { return slices.ContainsFunc(n.moves, m.same) && m.sender != "" })
		if slices.ContainsFunc(moves, sent) && !done || n.moves[n.chosen].effect.clients != [maxClients]bool{} {
			n.batch = -1
		}
	}
}

// next changes the last choice of the path that can be changed. It returns false if there is none.
func (b *branch) next() bool {
	for len(b.path) > 0 {
		if last := len(b.path) - 1; !b.path[last].next() {
			b.path = b.path[:last]
			continue
		}
		return true
	}
	return false
}

// split returns the choices that are left at the first state that has any. They no longer belong to b.
func (b *branch) split() *branch {
	for i, n := range b.path {
		half := &node{moves: n.moves, chosen: n.chosen, end: n.end, asleep: slices.Clone(n.asleep), batch: -1, twins: n.twins}
		// A batch may still turn out to be none. Then its other orders belong to b.
		if n.chosen < 0 || n.batch >= 0 || i > 0 && b.path[i-1].batch >= 0 || !half.next() {
			continue
		}
		n.end = n.chosen + 1
		other := &branch{full: b.full}
		for _, before := range b.path[:i] {
			other.path = append(other.path, &node{moves: before.moves, chosen: before.chosen, end: before.chosen + 1, batch: -1})
		}
		other.path = append(other.path, half)
		return other
	}
	return nil
}

func texts(moves []move) string {
	var all []string
	for _, m := range moves {
		all = append(all, m.token+" ("+m.text+")")
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// next chooses the next move that is not asleep. The former choice falls asleep. It returns false if
// none is left.
func (n *node) next() bool {
	if n.chosen >= 0 {
		n.asleep = append(n.asleep, n.moves[n.chosen])
	}
	for i := n.chosen + 1; i < n.end; i++ {
		if n.batch >= 0 && i > n.batch && n.moves[i].sender != "" {
			continue
		}
		if i < len(n.twins) && n.twins[i] >= 0 {
			twin := slices.IndexFunc(n.asleep, n.moves[n.twins[i]].same)
			if twin >= 0 {
				n.asleep = append(n.asleep, n.moves[i].asTwin(n.asleep[twin]))
			}
		}
		if !slices.ContainsFunc(n.asleep, n.moves[i].same) {
			n.chosen = i
			return true
		}
	}
	n.chosen = -1
	return false
}

// sleepAfter returns what is asleep after the chosen move: what is asleep here and independent of it.
func (n *node) sleepAfter() (asleep []move) {
	for _, m := range n.asleep {
		if m.effect.independent(n.moves[n.chosen].effect) {
			asleep = append(asleep, m)
		}
	}
	return asleep
}

func (r *Result) add(o Outcome) {
	r.Schedules++
	r.Outcomes[o.String()]++
	for _, c := range []struct {
		count *int
		is    bool
	}{
		{&r.Oversold, o.Has(LosesUpdate)},
		{&r.Stalled, o.Has(WaitsInVain)},
		{&r.Aborted, o.Has(GivesUp)},
		{&r.Late, o.Has(WaitsALease)},
		{&r.Two, o.Has(HasTwoHolders)},
	} {
		if c.is {
			*c.count++
		}
	}
}

// Replay runs one schedule. It returns its steps, also if a token of the trail does not fit.
func Replay(t Trial, trail []string) (steps []Step, o Outcome, err error) {
	r, err := openExecutor(t)
	if err != nil {
		return nil, o, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	var wrong error
	o, finished, err := r.run(func(moves []move) int {
		if len(steps) == len(trail) {
			wrong = fmt.Errorf("the trail ends after %d steps, and could go on with %s", len(trail), texts(moves))
			return -1
		}
		token := trail[len(steps)]
		i := slices.IndexFunc(moves, func(m move) bool { return m.token == token })
		if i < 0 {
			wrong = fmt.Errorf("step %d of the trail is %q, but only these are possible: %s", len(steps)+1, token, texts(moves))
			return -1
		}
		steps = append(steps, moves[i].step())
		return i
	})
	switch {
	case err != nil:
		return steps, o, err
	case wrong != nil:
		return steps, o, wrong
	case !finished || len(steps) < len(trail):
		return steps, o, fmt.Errorf("the schedule ended after %d of the %d steps", len(steps), len(trail))
	}
	return steps, o, nil
}
