package dash

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"oversell/api"
	"oversell/dash/hub"
	"oversell/docs"
	"oversell/lab/rig"
	"oversell/lab/stepper"
)

// steps is the page of a round: the user runs one request of each of two clients, step by step.
type steps struct {
	s *Server
	// Only functions that the hub calls may access the fields below: see hub.Send.
	scene   scene
	job     *job                // the job of the open round, or nil
	presses chan stepper.Client // passes each press to the open round; undo takes the last one back
}

const (
	// idleLimit ends a round if no button is pressed: an open round blocks all other jobs.
	idleLimit = 10 * time.Minute
	// lookInterval is the time between two checks whether a waiting client can continue.
	lookInterval = 250 * time.Millisecond
	// playPause is the time between two steps when the page plays the schedule that it has found.
	playPause = time.Second
	// undo stands for a press of Undo, in place of a client.
	undo = stepper.Client(-1)
	// longestLease is the longest lease that a request may ask for.
	longestLease = time.Minute
)

func newSteps(s *Server) {
	p := &steps{s: s}
	s.hub.Open("step", p.all)
	if s.Service != nil {
		return
	}
	s.pageWithGroups("/dash/step", "step", bilingual("Step", "单步"), func(r *http.Request, groups []group) any {
		chosen := r.URL.Query().Get("strategy")
		if chosen == "" {
			s.hub.Do(func() { chosen = p.scene.Card.ID })
		}
		return struct {
			Groups []group
			Chosen string
			TooFew bool
		}{groups, chosen, len(s.Lab.Replicas) < 2}
	})
	for path, do := range map[string]func(context.Context, *http.Request) error{
		"begin": p.begin, "press": p.press, "undo": func(context.Context, *http.Request) error { return p.pass(undo) }, "end": p.end, "guess": p.guess, "hint": p.hint,
	} {
		s.routes.HandleFunc("POST /dash/step/"+path, s.withToken(do))
	}
}

// begin replaces the open round. With solve, the program takes all steps, and loses an update.
func (p *steps) begin(ctx context.Context, req *http.Request) error {
	if len(p.s.Lab.Replicas) < 2 {
		return reject(http.StatusConflict, "Two clients need two replicas. Start the page with the addresses of two or more: --replicas.", "两个客户端需要两个副本。启动页面时请用 --replicas 给出更多副本的地址。")
	}
	c, err := p.s.catalogue.one(ctx, req.Form.Get("strategy"))
	if err != nil {
		return err
	}
	if err := p.end(ctx, req); err != nil {
		return err
	}
	return p.s.jobs.start(ctx, sender(req), api.Textf("%s, step by step", "单步 %s", c.ID), func(ctx context.Context, free func()) { p.work(ctx, c, req.Form.Has("solve"), free) })
}

// end ends the open round. It returns when both clients have disconnected.
func (p *steps) end(ctx context.Context, _ *http.Request) error {
	var open *job
	p.s.hub.Do(func() { open = p.job })
	open.end(ctx)
	return nil
}

func (p *steps) press(_ context.Context, req *http.Request) error {
	who, known := map[string]stepper.Client{"a": stepper.A, "b": stepper.B}[req.Form.Get("who")]
	if !known {
		return badRequest("who must be a or b.", "who 必须是 a 或 b。")
	}
	return p.pass(who)
}

func (p *steps) pass(who stepper.Client) error {
	err := reject(http.StatusConflict, "No round is open. Start one first.", "没有进行中的一轮。请先开始。")
	p.s.hub.Do(func() {
		if p.presses == nil {
			return
		}
		select {
		case p.presses <- who:
			err = nil
		default:
			err = reject(http.StatusConflict, "The previous step has not finished yet. Press more slowly.", "上一步还没完成，请慢一点。")
		}
	})
	return err
}

func (p *steps) guess(_ context.Context, req *http.Request) error {
	left, err := strconv.Atoi(req.Form.Get("left"))
	if err != nil || left < stepper.Pieces-2 || left > stepper.Pieces {
		return badRequest("left must be 8, 9 or 10.", "left 必须是 8、9 或 10。")
	}
	p.change(func(now *scene) {
		if !now.Over && !now.Lost {
			now.Guess = left
		}
	})
	return nil
}

func (p *steps) hint(context.Context, *http.Request) error {
	p.change(func(now *scene) { now.Hint = true })
	return nil
}

func (p *steps) work(ctx context.Context, c api.Card, solve bool, free func()) {
	presses, best := make(chan stepper.Client, 2), shortestOf(c.ID)
	p.s.hub.Send("step", func() []hub.Message {
		p.scene = scene{Number: p.scene.Number + 1, Card: c, Places: stepper.Places(c.Code), Open: true, Solving: solve, Row: stepper.Pieces, Shortest: best}
		p.job = p.s.jobs.now()
		if !solve {
			p.presses = presses
		}
		return p.all()
	})
	lab, err := stepper.Open(rig.At(p.s.Lab), c.ID)
	if err == nil {
		if c.LeasePerRequest {
			lab.Lease = longestLease
		}
		if solve {
			err = p.solve(ctx, lab)
		} else {
			err = p.round(ctx, lab, presses)
		}
	}
	p.change(func(now *scene) {
		free()
		p.job, p.presses, now.Open = nil, nil, false
		switch {
		case errors.Is(context.Cause(ctx), errStopped):
			now.Said = bilingual("The round was stopped.", "这一轮已停止。")
		case err != nil:
			now.Said, now.Alarm = problemOf(err).Text, !errors.Is(err, errIdle)
		}
	})
}

var errIdle = reject(http.StatusRequestTimeout,
	"The round was ended after ten minutes without a press, because no other job can run while a round is open.",
	"十分钟没有人按键，这一轮已结束：一轮进行时，实验室不能运行别的任务。")

func (p *steps) round(ctx context.Context, lab *stepper.Lab, presses <-chan stepper.Client) error {
	var moves []stepper.Client
	round, err := lab.Begin(ctx)
	if err != nil {
		return err
	}
	p.change(func(now *scene) { now.update(round, nil) })
	idle, look := time.NewTimer(idleLimit), time.NewTicker(lookInterval)
	defer idle.Stop()
	defer look.Stop()
	for err == nil && !round.Over() {
		news := true
		select {
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-idle.C:
			err = errIdle
		case who := <-presses:
			idle.Reset(idleLimit)
			if who == undo {
				round, moves, err = again(ctx, lab, round, moves)
				break
			}
			moves = append(moves, who)
			err = round.Go(ctx, who)
		case <-look.C:
			news, err = round.Look(ctx)
		}
		if news {
			p.change(func(now *scene) { now.update(round, moves) })
		}
	}
	return errors.Join(err, round.Close())
}

// again takes the last move back: it plays the moves before it in a new round.
func again(ctx context.Context, lab *stepper.Lab, round *stepper.Round, moves []stepper.Client) (*stepper.Round, []stepper.Client, error) {
	if err := round.Close(); err != nil {
		return round, moves, err
	}
	moves = moves[:max(0, len(moves)-1)]
	next, err := lab.Begin(ctx)
	if err != nil {
		return round, moves, err
	}
	for _, who := range moves {
		if err = next.Go(ctx, who); err != nil {
			break
		}
	}
	return next, moves, err
}

func (p *steps) solve(ctx context.Context, lab *stepper.Lab) error {
	g, err := lab.GraphIn(ctx, docs.Steps, func() { p.change(func(now *scene) { now.Rounds++ }) })
	if err != nil {
		return err
	}
	found := g.Solution()
	if found == nil {
		p.change(func(now *scene) {
			now.Said = bilingual("No order of these steps loses an update. All of them were recorded.", "这些步骤的任何顺序都不会丢失更新。所有顺序都记录过。")
		})
		return nil
	}
	p.change(func(now *scene) {
		now.Said = api.Textf("Fewest switches between A and B that lose an update: %d", "丢失更新所需的最少切换次数：%d", found.Switches)
	})
	played := 0
	return lab.Solve(ctx, *found, func(round *stepper.Round) error {
		played++
		p.change(func(now *scene) { now.update(round, found.Moves[:played]) })
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(playPause):
			return nil
		}
	})
}

func (p *steps) change(change func(*scene)) {
	p.s.hub.Send("step", func() []hub.Message { change(&p.scene); return p.changed() })
}

// all returns the messages that draw the whole page. The hub calls it.
func (p *steps) all() []hub.Message {
	return append([]hub.Message{p.s.part("step", "listing", p.scene)}, p.changed()...)
}

// changed returns the messages that draw the page except the strategy's code. The hub calls it.
func (p *steps) changed() []hub.Message {
	return []hub.Message{
		p.s.part("step", "round", p.scene), p.s.part("step", "buttons", p.scene), p.s.part("step", "row", p.scene),
		hub.Replace(p.s.render("step", "column", "A", p.scene.column(stepper.A))), hub.Replace(p.s.render("step", "column", "B", p.scene.column(stepper.B))), p.s.part("step", "order", p.scene), hub.Replace(p.scene.messages()),
		hub.NewMessage("mark", p.scene.marks()),
	}
}
