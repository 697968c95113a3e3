package dash

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"oversell/lab/experiment"
	"oversell/lab/rig"
)

// breaks is the page of the experiments: the one that runs, and the newest result of each
// hazard on each strategy.
type breaks struct {
	s *Server
	// The fields below are read and written in the hub's turn only: see hub.send.
	now   breakState
	cards []experiment.Card // nil: not read from the service yet
	late  bool              // catchUp is reading them
	runs  map[resultKey]*storedResult
	count int
}

// resultKey identifies the result of a hazard on a strategy.
type resultKey struct {
	Hazard, Strategy string
	Fenced           bool
}

// Path returns the address of its page.
func (q resultKey) Path() string {
	path := "/dash/break/" + q.Hazard + "/" + q.Strategy
	if q.Fenced {
		path += "?fenced=true"
	}
	return path
}

// Body returns the form that runs it.
func (q resultKey) Body() string {
	body := "hazard=" + q.Hazard + "&strategy=" + q.Strategy
	if q.Fenced {
		body += "&fenced=true"
	}
	return body
}

// Name returns the strategy's id, and whether it is fenced.
func (q resultKey) Name() string {
	return experiment.Result{Strategy: q.Strategy, Fenced: q.Fenced}.Name()
}

// ID returns the id of the result on the page, which the script uses too.
func (q resultKey) ID() string {
	id := q.Hazard + "." + q.Strategy
	if q.Fenced {
		id += ".fenced"
	}
	return id
}

// storedResult is the newest result of a key.
type storedResult struct {
	experiment.Result
	ID        int // the newest has the highest
	Forgotten bool
}

// breakState describes the plan that runs, or that ran last.
type breakState struct {
	Begun, Running, Stopped bool

	Unable   bool // nothing can be broken here: there is no button to press
	Who      string
	What     Text                 // the experiment or step in progress
	Hazard   string               // of the experiment in progress, if there is one
	includes func(resultKey) bool // reports whether the plan runs it
	Error    *Text
}

// mostSteps limits the steps of all recordings, to about 100 MB. Beyond it the oldest
// recordings are dropped, and their verdicts stay.
const mostSteps = 400_000

// again is the pause before the next request to a service that did not answer.
const again = time.Second

func newBreaks(s *Server) *breaks {
	// The page of a result stays open while the lab restarts. A run of the new lab needs
	// another number than the run on the page, or the page would not load the new one.
	b := &breaks{s: s, runs: map[resultKey]*storedResult{}, count: int(time.Now().UnixMilli())}
	b.now.Unable = !b.able()
	s.hub.open("break", b.all)
	s.hub.open("result", b.some)
	return b
}

func (b *breaks) route() {
	b.s.routes.HandleFunc("GET /dash/break", b.page)
	b.s.routes.HandleFunc("GET /dash/break/{hazard}/{strategy}", b.resultPage)
	b.s.routes.HandleFunc("GET /dash/timeline.css", timelineStyle)
	b.s.routes.HandleFunc("POST /dash/break/start", b.s.guarded(b.start))
}

// able reports whether this machine can run experiments.
func (b *breaks) able() bool { return b.s.Binary != "" }

// learn reads the cards from the service, once.
func (b *breaks) learn(ctx context.Context) ([]experiment.Card, error) {
	var cards []experiment.Card
	b.s.hub.send("break", func() []message { cards = b.cards; return nil })
	if cards != nil {
		return cards, nil
	}
	if err := b.s.catalogue.ask(ctx, "/strategies", &cards); err != nil {
		return nil, err
	}
	b.s.hub.send("break", func() []message { b.cards = cards; return nil })
	return cards, nil
}

func (b *breaks) page(w http.ResponseWriter, r *http.Request) {
	groups, err := b.s.catalogue.groups(r.Context())
	if err == nil {
		_, err = b.learn(r.Context())
	}
	if err != nil {
		b.s.sorry(w, r, http.StatusServiceUnavailable, unreachable(err))
		return
	}
	data := struct {
		Able    bool
		Hazards []hazard
		Groups  []group
		Matrix  matrixView
		Now     breakState
	}{Able: b.able(), Hazards: hazards(), Groups: groups}
	b.s.hub.send("break", func() []message { data.Matrix, data.Now = b.matrix(), b.now; return nil })
	b.s.show(w, r, "break", Text{"Break", "破坏"}, data)
}

// all returns everything that the matrix shows. It is called in the hub's turn.
func (b *breaks) all() []message {
	if b.cards == nil { // the lab was restarted, and the page was open already
		if !b.late {
			b.late = true
			go b.catchUp()
		}
		return []message{b.s.part("break", "now", b.now)}
	}
	return []message{b.s.part("break", "now", b.now), b.s.part("break", "matrix", b.matrix())}
}

// catchUp sends the matrix as soon as the service has sent its cards. The service may start
// after the page's server: until then the open pages show the results of the previous lab.
func (b *breaks) catchUp() {
	for {
		if _, err := b.learn(b.s.lifetime); err == nil {
			b.s.hub.send("break", b.all)
			return
		}
		select {
		case <-b.s.lifetime.Done():
			return
		case <-time.After(again):
		}
	}
}

// some returns what the page of a result shows of other runs. It is called in the hub's
// turn.
func (b *breaks) some() []message {
	kept := map[string]int{}
	for q, run := range b.runs {
		kept[q.ID()] = run.ID
	}
	return []message{b.s.part("break", "now", b.now), say("kept", kept)}
}

// plan reads the form. No hazard means all of them, and so does no strategy.
func (b *breaks) plan(ctx context.Context, req request) (p experiment.Plan, err error) {
	if !b.able() {
		return p, refusal{http.StatusConflict, cannot()}
	}
	p = experiment.Plan{Strategies: req.Form["strategy"], Fenced: req.Form.Get("fenced") == "true", Seed: 1, Seeds: 1}
	for _, h := range req.Form["hazard"] {
		if h != "" {
			p.Hazards = append(p.Hazards, h)
		}
	}
	for _, h := range p.Hazards {
		if _, ok := hazardOf(h); !ok {
			return p, bad(fmt.Sprintf("Hazard %q does not exist.", h), fmt.Sprintf("没有危险 %q。", h))
		}
	}
	cards, err := b.learn(ctx)
	if err != nil {
		return p, refusal{http.StatusServiceUnavailable, unreachable(err)}
	}
	for _, id := range p.Strategies {
		if !slices.ContainsFunc(cards, func(c experiment.Card) bool { return c.ID == id }) {
			return p, bad(fmt.Sprintf("Strategy %q does not exist.", id), fmt.Sprintf("没有策略 %q。", id))
		}
	}
	if !slices.ContainsFunc(resultKeys(cards), func(q resultKey) bool { return inPlan(p, q) }) {
		return p, bad("The hazard does not apply to the selected strategies. With fenced, a strategy needs a fencing token.", "这个危险影响不到所选的策略。选了 fenced 时，策略必须有栅栏令牌。")
	}
	return p, nil
}

// inPlan reports whether the plan runs the hazard on the strategy.
func inPlan(p experiment.Plan, q resultKey) bool {
	return (len(p.Hazards) == 0 || slices.Contains(p.Hazards, q.Hazard)) &&
		(len(p.Strategies) == 0 || slices.Contains(p.Strategies, q.Strategy)) &&
		(q.Fenced == p.Fenced || q.Fenced && len(p.Strategies) == 0)
}

func (b *breaks) start(ctx context.Context, req request) error {
	p, err := b.plan(ctx, req)
	if err != nil {
		return err
	}
	what := strings.Join(p.Hazards, ", ")
	if what == "" {
		what = "all hazards"
	}
	const few = 4 // more would make the line too long
	if n := len(p.Strategies); n > few {
		what += fmt.Sprintf(": %s … (%d)", strings.Join(p.Strategies[:few], ", "), n)
	} else if n > 0 {
		what += ": " + strings.Join(p.Strategies, ", ")
	}
	return b.s.jobs.take(ctx, req.Who, Text{"break " + what, "破坏 " + what}, func(ctx context.Context, free func()) { b.work(ctx, p, req.Who, free) })
}

// work runs the plan in a separate lab, so that the lab of the page keeps running.
func (b *breaks) work(ctx context.Context, p experiment.Plan, who string, free func()) {
	b.tell(func() {
		b.now = breakState{
			Begun: true, Running: true, Who: who, includes: func(q resultKey) bool { return inPlan(p, q) },
			What: Text{"starting a separate lab, because servers will be killed and frozen; this takes half a minute", "正在启动一个单独的实验室，因为要杀死和冻结服务器；大约需要半分钟"},
		}
	})
	err := b.inOwnLab(ctx, p)
	stopped := errors.Is(context.Cause(ctx), errStopped)
	b.tell(func() {
		free()
		b.now.Running, b.now.Stopped, b.now.Hazard = false, stopped, ""
		if err != nil && !stopped {
			b.now.Error = &Text{err.Error(), err.Error()}
		}
	})
}

func (b *breaks) inOwnLab(ctx context.Context, p experiment.Plan) (err error) {
	cfg := experiment.Config(b.s.Binary, b.s.Shop.Token)
	cfg.OnExit = b.s.OnExit
	lab, err := rig.Start(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() {
		b.mention(Text{"stopping its lab", "正在关闭它的实验室"})
		err = errors.Join(err, lab.Close())
	}()
	bed, err := experiment.Open(ctx, lab)
	if err != nil {
		return err
	}
	defer bed.Close()
	store, err := experiment.OpenStore("")
	if err != nil {
		return err
	}
	return experiment.Run(ctx, bed, p, store, breakWatch{b})
}

// tell makes a change and sends it to the pages. Of the matrix, which is large, it sends the
// results of the previous and the present hazard only.
func (b *breaks) tell(change func()) {
	b.s.hub.send("break", func() []message {
		before := b.now.Hazard
		change()
		return []message{b.s.part("break", "now", b.now), b.s.part("break", "tally", b.tally()), say("parts", b.column(before, b.now.Hazard))}
	})
	b.s.hub.send("result", b.some)
}

// mention changes only the description of the step in progress.
func (b *breaks) mention(what Text) { b.tell(func() { b.now.What = what }) }

// breakWatch receives the progress of the experiments, and sends it to the pages.
type breakWatch struct{ b *breaks }

func (w breakWatch) Begin(e experiment.Experiment, subjects, nth, of int) {
	h, _ := hazardOf(e.Hazard)
	w.b.tell(func() {
		w.b.now.Hazard = e.Hazard
		w.b.now.What = Text{
			fmt.Sprintf("%d of %d, %s on %d: %s", nth, of, e.Hazard, subjects, h.Title.EN),
			fmt.Sprintf("第 %d/%d 个，%s，%d 个策略：%s", nth, of, e.Hazard, subjects, h.Title.In("zh")),
		}
	})
}

func (w breakWatch) End(_ experiment.Experiment, cells []experiment.Result, _ time.Duration) {
	w.b.tell(func() {
		for _, c := range cells {
			w.b.keep(c)
		}
		w.b.makeRoom()
		w.b.now.Hazard = ""
	})
}

func (w breakWatch) LeftOut(e experiment.Experiment, why error) {
	w.b.tell(func() { w.b.now.Hazard = "" })
	w.b.mention(Text{e.Hazard + " was left out: " + why.Error(), "跳过 " + e.Hazard + "：" + why.Error()})
}

// keep stores a result as the newest of its key. It is called in the hub's turn.
func (b *breaks) keep(c experiment.Result) {
	b.count++
	b.runs[resultKey{c.Hazard, c.Strategy, c.Fenced}] = &storedResult{Result: c, ID: b.count}
}

// makeRoom drops the oldest recordings. It is called in the hub's turn.
func (b *breaks) makeRoom() {
	var newest []*storedResult
	for _, run := range b.runs {
		newest = append(newest, run)
	}
	slices.SortFunc(newest, func(x, y *storedResult) int { return y.ID - x.ID })
	steps := 0
	for _, run := range newest {
		steps += len(run.Recording.Ops) + len(run.Recording.Events)
		if steps > mostSteps {
			// Pages may be drawing the old one, so it is replaced, not changed.
			c := run.Result
			c.Recording.Ops, c.Recording.Events, c.Recording.Spans = nil, nil, nil
			b.runs[resultKey{c.Hazard, c.Strategy, c.Fenced}] = &storedResult{Result: c, ID: run.ID, Forgotten: true}
		}
	}
}

func cannot() Text {
	return Text{
		"This page cannot run experiments: they kill and freeze servers. Start a lab with oversell lab, on a machine where the servers are installed.",
		"本页不能做破坏实验：那需要杀死和冻结自己的服务器，只有在装有这些服务器的机器上运行 oversell lab 才能做到。",
	}
}
