package dash

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"oversell/api"
	"oversell/dash/hub"
	"oversell/lab/rig"
	"oversell/lab/scenario"
)

// scenarioPage runs each scenario with each guard, and shows the results.
type scenarioPage struct {
	s *Server
	// The hub's mutex protects the fields below: see hub.Send.
	now     progress
	results []scenario.Result // the newest first
}

const maxScenarioResults = 60

func newScenarioPage(s *Server) {
	p := &scenarioPage{s: s}
	s.hub.Open("shop", p.all)
	s.page("/dash/course/shop", "shop", func(*http.Request) (view, error) {
		return view{Page: "course", Topic: "shop", Title: bilingual("A shop", "商店"), Data: scenario.All()}, nil
	})
	s.routes.HandleFunc("POST /dash/course/shop/start", s.withToken(p.start))
}

// all returns the messages that draw the whole page. The hub's mutex must be locked.
func (p *scenarioPage) all() []hub.Message {
	return []hub.Message{p.s.part("shop", "now", p.now), p.s.part("shop", "results", p.results)}
}

func (p *scenarioPage) start(ctx context.Context, req *http.Request) error {
	id := req.Form.Get("scenario")
	i := slices.IndexFunc(scenario.All(), func(s scenario.Scenario) bool { return s.ID == id })
	if i < 0 {
		return badRequest("Scenario %q does not exist.", "没有场景 %q。", id)
	}
	chosen := scenario.All()[i]
	var guards []scenario.Guard
	for _, name := range named[string](req, "guard") {
		guard, err := chosen.Guard(name)
		if err != nil {
			return badRequest("%v", "%v", err)
		}
		guards = append(guards, guard)
	}
	if len(guards) == 0 {
		guards = chosen.Guards
	}
	if have := len(p.s.Lab.Replicas); have < chosen.Replicas && p.s.Binary == "" {
		return reject(http.StatusConflict, "This scenario needs %d replicas, and this lab has %d. Start the lab with oversell lab, which can start more.",
			"这个场景需要 %d 个副本，而这个实验室只有 %d 个。请用 oversell lab 启动实验室，它可以启动更多副本。", chosen.Replicas, have)
	}
	return p.s.jobs.follow(ctx, sender(req), api.Verbatim(chosen.ID), chosen.Title, &p.now, p.change, func(ctx context.Context) error {
		return p.run(ctx, chosen, guards)
	})
}

func (p *scenarioPage) run(ctx context.Context, chosen scenario.Scenario, guards []scenario.Guard) (err error) {
	addrs := p.s.Lab
	if len(addrs.Replicas) < chosen.Replicas {
		p.change(func() {
			p.now.What = bilingual("starting a lab with more replicas", "正在启动一个副本更多的实验室")
		})
		cfg := rig.FullLab(p.s.Binary, p.s.Lab.Token)
		cfg.Replicas, cfg.OnExit = chosen.Replicas, p.s.OnExit
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
			p.now.What = api.Textf("%[1]s, guard %[3]s (%[4]d of %[5]d)", "%[2]s，防护 %[3]s（第 %[4]d/%[5]d 种）",
				chosen.Title.EN, chosen.Title.ZH, guard.ID, i+1, len(guards))
		})
		r, err := chosen.Run(ctx, shop, guard)
		if err != nil {
			return err
		}
		p.change(func() {
			p.results = append([]scenario.Result{r}, p.results...)
			p.results = p.results[:min(len(p.results), maxScenarioResults)]
		})
	}
	return nil
}

func (p *scenarioPage) change(change func()) {
	p.s.hub.Send("shop", func() []hub.Message { change(); return p.all() })
}
