package dash

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"oversell/lab/rig"
	"oversell/lab/scenario"
)

// scenarioPage runs the scenarios, each with every guard, and shows the results.
type scenarioPage struct {
	s *Server
	// What follows is changed and read in the hub's turn only: see hub.send.
	now  scenarioRun
	told []scenarioResult
}

// scenarioRun is the run under way, or the last one.
type scenarioRun struct {
	Begun, Running, Stopped bool

	Who   string
	What  Text
	Error *Text
}

// scenarioResult is the result of one scenario with one guard.
type scenarioResult struct {
	scenario.Result
	Answers []figure // what the customers were told, by number
	Numbers []figure
}

// figure is a name with what it is.
type figure struct{ Name, Value string }

// Class marks a result for the eye.
func (t scenarioResult) Class() string {
	if t.Holds() {
		return "holds"
	}
	return "broken"
}

// maxResults is the number of results that the page keeps.
const maxResults = 60

func newScenarioPage(s *Server) *scenarioPage {
	p := &scenarioPage{s: s}
	s.hub.open("shop", p.all)
	return p
}

func (p *scenarioPage) route() {
	p.s.routes.HandleFunc("GET /dash/shop", func(w http.ResponseWriter, r *http.Request) {
		type story struct {
			scenario.Scenario
			Name Text
		}
		var all []story
		for _, s := range scenario.All() {
			all = append(all, story{s, Text(s.Title)})
		}
		p.s.show(w, r, "shop", Text{"Shop", "商店"}, all)
	})
	p.s.routes.HandleFunc("POST /dash/shop/start", p.s.guarded(p.start))
}

// all is everything that a page shows. It is called in the hub's turn.
func (p *scenarioPage) all() []message {
	return []message{p.s.part("shop", "telling", p.now), p.s.part("shop", "told", p.told)}
}

func (p *scenarioPage) start(ctx context.Context, req request) error {
	id := req.Form.Get("scenario")
	i := slices.IndexFunc(scenario.All(), func(s scenario.Scenario) bool { return s.ID == id })
	if i < 0 {
		return bad(fmt.Sprintf("There is no scenario %q.", id), fmt.Sprintf("没有场景 %q。", id))
	}
	story := scenario.All()[i]
	var guards []scenario.Guard
	for _, name := range req.Form["guard"] {
		guard, err := story.Guard(name)
		if err != nil {
			return bad(err.Error(), err.Error())
		}
		guards = append(guards, guard)
	}
	if len(guards) == 0 {
		guards = story.Guards
	}
	if len(p.s.Shop.Replicas) < story.Replicas && p.s.Binary == "" {
		return refusal{http.StatusConflict, Text{
			fmt.Sprintf("This takes %d replicas, and this lab has %d: oversell lab can bring up more.", story.Replicas, len(p.s.Shop.Replicas)),
			fmt.Sprintf("这需要 %d 个副本，而这个实验室只有 %d 个：oversell lab 可以启动更多。", story.Replicas, len(p.s.Shop.Replicas)),
		}}
	}
	what := Text{story.ID, story.ID}
	return p.s.jobs.take(ctx, req.Who, what, func(ctx context.Context, free func()) { p.work(ctx, story, guards, req.Who, free) })
}

// work tells the story with each guard.
func (p *scenarioPage) work(ctx context.Context, story scenario.Scenario, guards []scenario.Guard, who string, free func()) {
	p.change(func() { p.now = scenarioRun{Begun: true, Running: true, Who: who, What: Text(story.Title)} })
	err := p.tell(ctx, story, guards)
	stopped := errors.Is(context.Cause(ctx), errStopped)
	p.change(func() {
		free()
		p.now.Running, p.now.Stopped = false, stopped
		if err != nil && !stopped {
			p.now.Error = &Text{err.Error(), err.Error()}
		}
	})
}

func (p *scenarioPage) tell(ctx context.Context, story scenario.Scenario, guards []scenario.Guard) (err error) {
	addrs := p.s.Shop
	if len(addrs.Replicas) < story.Replicas {
		p.change(func() {
			p.now.What = Text{"starting a lab with more replicas", "正在启动一个副本更多的实验室"}
		})
		cfg := rig.FullLab(p.s.Binary, p.s.Shop.Token)
		cfg.Ports, cfg.Replicas, cfg.OnExit = rig.Ports{}, story.Replicas, p.s.OnExit
		lab, err := rig.Start(ctx, cfg)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, lab.Close()) }()
		addrs = lab.Addresses()
	}
	shop := scenario.Connect(addrs)
	defer shop.Close()
	for i, guard := range guards {
		p.change(func() {
			p.now.What = Text{
				fmt.Sprintf("%s, guard %s (%d of %d)", story.Title.EN, guard.ID, i+1, len(guards)),
				fmt.Sprintf("%s，守护 %s（第 %d/%d 个）", story.Title.ZH, guard.ID, i+1, len(guards)),
			}
		})
		result, err := story.Run(ctx, shop, guard)
		if err != nil {
			return err
		}
		p.change(func() {
			p.told = append([]scenarioResult{inWords(result)}, p.told...)
			p.told = p.told[:min(len(p.told), maxResults)]
		})
	}
	return nil
}

// change changes what there is, and sends all of it.
func (p *scenarioPage) change(what func()) {
	p.s.hub.send("shop", func() []message { what(); return p.all() })
}

// inWords has a result's figures in an order.
func inWords(r scenario.Result) scenarioResult {
	t := scenarioResult{Result: r}
	for name, n := range r.Outcomes {
		t.Answers = append(t.Answers, figure{name, strconv.Itoa(n)})
	}
	for name, n := range r.Figures {
		t.Numbers = append(t.Numbers, figure{name, strconv.FormatFloat(n, 'f', -1, 64)})
	}
	byName := func(a, b figure) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(t.Answers, byName)
	slices.SortFunc(t.Numbers, byName)
	return t
}

// Said is the sentence in the page's language.
func (t scenarioResult) Said() Text { return Text(t.Sentence) }
