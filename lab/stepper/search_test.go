package stepper

import (
	"slices"
	"testing"
)

// model imitates a strategy without a server. The strategy reads and writes the row, with or
// without a lock around these two steps.
type model struct {
	locked  bool
	row     int
	holder  int // Client, or -1
	read    [2]int
	done    [2]int // steps
	waiting [2]bool
}

const lastStep = 5 // ask, acquire, read, write, release

func (m *model) free(c Client) bool { return m.done[c] < lastStep && !m.waiting[c] }

func (m *model) goOn(c Client) {
	m.waiting[c] = false
	switch m.done[c] {
	case 1:
		if m.locked && m.holder == int(c.other()) {
			m.waiting[c] = true
			return
		}
		m.holder = int(c)
	case 2:
		m.read[c] = m.row
	case 3:
		m.row = m.read[c] - 1
	case 4:
		m.holder = -1
		m.waiting[c.other()] = false
	}
	m.done[c]++
}

// play runs a schedule on the model, with the same loop as Lab.play.
func (m model) play(first schedule) (played, error) {
	var p played
	m.row, m.holder = Pieces, -1
	turn := A
	for m.done[A] < lastStep || m.done[B] < lastStep {
		if n := len(p.moves); n < len(first) {
			turn = first[n]
		}
		turn = next(turn, m.free(A), m.free(B), m.done[turn] == lastStep)
		p.moves = append(p.moves, move{turn, m.free(turn.other())})
		m.goOn(turn)
	}
	p.lost = m.row != Pieces-2
	return p, nil
}

func TestSearchFindsTheFewestInterruptions(t *testing.T) {
	t.Parallel()
	calls := 0
	s, err := search(model{}.play, func() { calls++ })
	if err != nil || !s.Lost || s.Interruptions != 1 {
		t.Errorf("no lock: %+v, %v; one interruption is enough", s, err)
	}
	// The search tries a run without an interruption. Then it tries an interruption after A's first,
	// second and third step. The third step is the read, so this run loses the update.
	if s.Tried != 4 || calls != 4 {
		t.Errorf("no lock: %d schedules tried, %d callbacks; want 4", s.Tried, calls)
	}
}

func TestSearchEndsWithoutALoss(t *testing.T) {
	t.Parallel()
	s, err := search(model{locked: true}.play, func() {})
	if err != nil || s.Lost || s.Interruptions != maxInterruptions || s.Tried < 5 {
		t.Errorf("with a lock: %+v, %v", s, err)
	}
}

// TestSearchIsInBreadth checks that all schedules with one interruption are tried before any with
// two interruptions, and that no schedule is tried twice.
func TestSearchIsInBreadth(t *testing.T) {
	t.Parallel()
	var tried []schedule
	s, err := search(func(first schedule) (played, error) {
		p, err := model{locked: true}.play(first)
		var all schedule
		changes := 0
		for i, m := range p.moves {
			all = append(all, m.client)
			if i > 0 && m.client != p.moves[i-1].client && p.moves[i].free {
				changes++
			}
		}
		for _, earlier := range tried {
			if slices.Equal(earlier, all) {
				t.Errorf("%v was tried twice", all)
			}
		}
		tried = append(tried, all)
		p.lost = changes >= 2
		return p, err
	}, func() {})
	if err != nil || !s.Lost || s.Interruptions != 2 {
		t.Errorf("%+v, %v; want it found with two interruptions", s, err)
	}
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	moves := []move{{A, true}, {A, true}, {A, false}, {B, false}, {B, true}, {B, false}}
	for _, c := range []struct {
		from int
		want []schedule
	}{
		{0, []schedule{{A, B}, {A, A, A, B, A}}}, // never the first move, nor where the other can't
		{2, []schedule{{A, A, A, B, A}}},
		{5, nil},
	} {
		if got := interrupted(moves, c.from); !slices.EqualFunc(got, c.want, slices.Equal[schedule]) {
			t.Errorf("from %d: %v, want %v", c.from, got, c.want)
		}
	}
}

func TestNext(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		turn                Client
		freeA, freeB, ended bool
		want                Client
	}{
		{A, true, true, false, A},
		{B, true, true, false, B},
		{A, false, true, false, B},  // A waits, or has its answer
		{A, false, false, false, A}, // both wait: it stays A's turn
		{A, false, false, true, B},  // A has ended, B waits
	} {
		if got := next(c.turn, c.freeA, c.freeB, c.ended); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
