package dash

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"oversell/lab/stepper"
)

// steps is the page that walks two clients through a strategy.
type steps struct {
	s *Server
	// What follows is changed and read in the hub's turn only: see hub.send.
	scene   scene
	job     *job                // of the round that is open; nil: none is
	presses chan stepper.Client // to it
}

const (
	// tired ends a round in which nobody presses anything: no other job can start meanwhile.
	tired = 10 * time.Minute
	// glance is how often a client that waits is looked at.
	glance = 250 * time.Millisecond
	// pace is the time between two steps of the solution.
	pace = time.Second
	// lease is the longest that a request may ask for: a class takes its time.
	lease = time.Minute
)

func newSteps(s *Server) *steps {
	p := &steps{s: s}
	s.hub.open("step", p.all)
	return p
}

func (p *steps) route() {
	s := p.s
	s.routes.HandleFunc("GET /dash/step", func(w http.ResponseWriter, r *http.Request) {
		groups, err := s.catalogue.groups(r.Context())
		if err != nil {
			s.sorry(w, r, http.StatusServiceUnavailable, unreachable(err))
			return
		}
		s.show(w, r, "step", Text{"Step", "单步"}, struct {
			Groups []group
			Chosen string
			Few    bool
		}{groups, r.URL.Query().Get("strategy"), len(s.Shop.Replicas) < 2})
	})
	for path, do := range map[string]func(context.Context, request) error{
		"begin": p.begin, "press": p.press, "end": p.end, "guess": p.guess, "show": p.reveal,
	} {
		s.routes.HandleFunc("POST /dash/step/"+path, s.guarded(do))
	}
}

// begin opens a round, or with solve has the program look for the lost update. A round
// that is open ends first.
func (p *steps) begin(ctx context.Context, req request) error {
	if len(p.s.Shop.Replicas) < 2 {
		return refusal{http.StatusConflict, Text{"Two clients need two replicas, and this lab told of fewer.", "两个客户端需要两个副本，而这个实验室给出的副本不足。"}}
	}
	id := req.Form.Get("strategy")
	c, err := p.s.catalogue.one(ctx, id)
	var known refusal
	switch {
	case errors.As(err, &known):
		return err
	case err != nil:
		return refusal{http.StatusServiceUnavailable, unreachable(err)}
	}
	if err := p.end(ctx, req); err != nil {
		return err
	}
	what := Text{c.ID + ", step by step", "单步 " + c.ID}
	return p.s.jobs.take(ctx, req.Who, what, func(ctx context.Context, free func()) { p.work(ctx, c, req.Form.Has("solve"), free) })
}

// end ends the round that is open, and returns when both clients are gone.
func (p *steps) end(ctx context.Context, _ request) error {
	var open *job
	p.s.hub.send("step", func() []message { open = p.job; return nil })
	if open == nil {
		return nil
	}
	open.stop(errStopped)
	select {
	case <-open.done:
	case <-ctx.Done():
	}
	return nil
}

// press lets a client go on.
func (p *steps) press(_ context.Context, req request) error {
	who, known := map[string]stepper.Client{"a": stepper.A, "b": stepper.B}[req.Form.Get("who")]
	if !known {
		return bad("who must be a or b.", "who 必须是 a 或 b。")
	}
	err := error(refusal{http.StatusConflict, Text{"No round is open: start one.", "没有进行中的一轮：请先开始。"}})
	p.s.hub.send("step", func() []message {
		if p.presses == nil {
			return nil
		}
		select {
		case p.presses <- who:
			err = nil
		default:
			err = refusal{http.StatusConflict, Text{"Slowly: the last step is still under way.", "慢一点：上一步还没走完。"}}
		}
		return nil
	})
	return err
}

// guess notes what the class expects.
func (p *steps) guess(_ context.Context, req request) error {
	left, err := strconv.Atoi(req.Form.Get("left"))
	if err != nil || left < stepper.Pieces-2 || left > stepper.Pieces {
		return bad("left must be 8, 9 or 10.", "left 必须是 8、9 或 10。")
	}
	p.change(func(now *scene) {
		if !now.Shown { // afterwards it would be no guess
			now.Guess = left
		}
	})
	return nil
}

// reveal shows the row, the answers and the end to everybody.
func (p *steps) reveal(context.Context, request) error {
	p.change(func(now *scene) { now.Shown = true })
	return nil
}

// work is the job: a round by hand, or the solution.
func (p *steps) work(ctx context.Context, c card, solve bool, free func()) {
	job, presses := p.s.jobs.now(), make(chan stepper.Client, 2)
	p.s.hub.send("step", func() []message {
		p.scene = scene{Card: c, Code: inLines(c), Open: true, Solving: solve, Shown: solve, Row: stepper.Pieces}
		p.job = job
		if !solve {
			p.presses = presses
		}
		return p.all()
	})
	lab, err := stepper.Open(p.s.Shop, c.ID)
	if err == nil {
		if c.LeasePerRequest {
			lab.Lease = lease
		}
		if solve {
			err = p.solve(ctx, lab)
		} else {
			err = p.round(ctx, lab, presses)
		}
	}
	p.s.hub.send("step", func() []message {
		free()
		now := &p.scene
		p.job, p.presses, now.Open = nil, nil, false
		switch {
		case errors.Is(context.Cause(ctx), errStopped):
			now.Said = Text{"It was ended here.", "到此结束。"}
		case errors.Is(err, errTired):
			now.Said = Text{"Nobody has pressed anything for ten minutes, so the round was ended: it keeps others from running anything.", "十分钟没有人按键，这一轮已结束：它占着实验室，别人无法运行。"}
		case err != nil:
			now.Said, now.Alarm = Text{err.Error(), err.Error()}, true
		}
		return p.changed()
	})
}

var errTired = errors.New("nobody has pressed anything for ten minutes")

// round walks as it is told, until both clients have their answers.
func (p *steps) round(ctx context.Context, lab *stepper.Lab, presses <-chan stepper.Client) error {
	round, err := lab.Begin(ctx)
	if err != nil {
		return err
	}
	idle, look := time.NewTimer(tired), time.NewTicker(glance)
	defer idle.Stop()
	defer look.Stop()
	for err == nil && !round.Over() {
		news := true
		select {
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-idle.C:
			err = errTired
		case who := <-presses:
			idle.Reset(tired)
			err = round.Go(ctx, who)
		case <-look.C:
			news, err = round.Look(ctx)
		}
		if news {
			p.change(func(now *scene) { now.see(round) })
		}
	}
	return errors.Join(err, round.Close())
}

// solve looks for the shortest way to lose an update, and plays it.
func (p *steps) solve(ctx context.Context, lab *stepper.Lab) error {
	found, err := lab.Solve(ctx, func() { p.change(func(now *scene) { now.Tried++ }) })
	if err != nil {
		return err
	}
	if !found.Lost {
		p.change(func(now *scene) {
			now.Said = Text{
				fmt.Sprintf("None of %d schedules, with up to %d interruptions, loses an update. Each was a real run.", found.Tried, found.Interruptions),
				fmt.Sprintf("试了 %d 种交错，最多打断 %d 次，都没有丢失更新。每一种都真的运行过。", found.Tried, found.Interruptions),
			}
		})
		return nil
	}
	p.change(func(now *scene) {
		now.Said = Text{
			fmt.Sprintf("The shortest way to lose an update: interrupted so often: %d (%d schedules tried).", found.Interruptions, found.Tried),
			fmt.Sprintf("丢失更新的最短途径：打断 %d 次（试了 %d 种交错）。", found.Interruptions, found.Tried),
		}
	})
	for i, l := range found.Log {
		if i > 0 {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(pace):
			}
		}
		p.change(func(now *scene) {
			now.Log, now.Row, now.States[l.Client] = found.Log[:i+1], l.Row, l.State()
			if i == len(found.Log)-1 {
				now.Over, now.Wrong, now.Sentence = true, true, Text(found.Sentence)
			}
		})
	}
	return nil
}

// change changes the scene, and tells the pages.
func (p *steps) change(what func(*scene)) {
	p.s.hub.send("step", func() []message { what(&p.scene); return p.changed() })
}

// all is everything that a page shows; changed is what a step changes. Both are called in
// the hub's turn.
func (p *steps) all() []message {
	a, b := p.scene.column(stepper.A), p.scene.column(stepper.B)
	return append([]message{p.s.part("step", "codeA", a), p.s.part("step", "codeB", b)}, p.changed()...)
}

func (p *steps) changed() []message {
	a, b := p.scene.column(stepper.A), p.scene.column(stepper.B)
	return []message{
		p.s.part("step", "round", p.scene), p.s.part("step", "ending", p.scene),
		p.s.part("step", "A", a), p.s.part("step", "B", b),
		say("mark", []mark{a.Mark, b.Mark}),
	}
}
