package dash

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"oversell/api"
	"oversell/dash/hub"
	"oversell/lab/comparison"
	"oversell/lab/load"
	"oversell/lab/measure"
)

// runs is the page that compares strategies under load. It keeps the results of the runs.
type runs struct {
	s *Server
	// The hub's mutex protects the fields below: see hub.Send.
	live    *live
	results []kept
	next    int
}

func newRuns(s *Server) *runs {
	r := &runs{s: s, live: &live{}}
	s.hub.Open("run", r.all)
	if s.Service == nil {
		s.pageWithGroups("/{$}", "run", bilingual("Run", "运行"), func(_ *http.Request, groups []group) any {
			return struct {
				Groups []group
				Rest   api.Text // the picture before the first run
			}{groups, drawn(s.system(""))}
		})
	}
	s.routes.HandleFunc("POST /dash/run/start", s.withToken(r.start))
	s.routes.HandleFunc("POST /dash/run/forget", s.withToken(r.forget))
	s.routes.HandleFunc("GET /dash/results/{file}", r.download)
	return r
}

func (r *runs) plan(req *http.Request) (comparison.Plan, error) {
	p := comparison.Plan{
		Plan:  load.Plan{Target: r.s.Lab.Target, Seed: time.Now().UnixMilli()},
		Token: r.s.Lab.Token, Strategies: req.Form["strategy"],
		Conditions: measure.Conditions{Machine: r.s.Machine, Versions: r.s.Versions},
	}
	if len(p.Strategies) == 0 {
		return p, badRequest("Choose a strategy first.", "请先选择策略。")
	}
	for name, to := range map[string]*int{"clients": &p.Clients, "loops": &p.Loops, "stock": &p.Stock} {
		n, err := strconv.Atoi(req.Form.Get(name))
		if err != nil {
			return p, badRequest("%s must be a whole number.", "%s 必须是整数。", name)
		}
		*to = n
	}
	switch req.Form.Get("replicas") {
	case "", "all":
	case "1":
		if len(r.s.Lab.Replicas) == 0 {
			return p, badRequest("This page does not know the address of a replica. Start the page with --replicas.", "本页不知道副本的地址。启动页面时请用 --replicas 给出。")
		}
		p.Target = r.s.Lab.Replicas[0]
	default:
		return p, badRequest("replicas must be 1 or all.", "replicas 必须是 1 或 all。")
	}
	durations := map[string]*time.Duration{"hold": &p.Hold, "wait": &p.Wait}
	if req.Form.Get("lease") != "" { // empty means each strategy's default
		durations["lease"] = &p.Lease
	}
	for name, to := range durations {
		ms, err := strconv.Atoi(req.Form.Get(name))
		if err != nil || ms < 0 || ms > 60_000 {
			return p, badRequest("%s must be 0 to 60000 ms.", "%s 必须在 0 到 60000 毫秒之间。", name)
		}
		*to = time.Duration(ms) * time.Millisecond
	}
	if err := p.Validate(); err != nil {
		return p, badRequest("%v", "%v", err)
	}
	return p, nil
}

func (r *runs) start(ctx context.Context, req *http.Request) error {
	p, err := r.plan(req)
	if err != nil {
		return err
	}
	cards, err := r.s.catalogue.all(ctx)
	if err != nil {
		return err
	}
	for _, id := range p.Strategies {
		if _, err := findCard(cards, id, http.StatusBadRequest); err != nil {
			return err
		}
	}
	return r.follow(ctx, sender(req), p)
}

// follow starts the run, and shows its progress.
func (r *runs) follow(ctx context.Context, who string, p comparison.Plan) error {
	names := api.Verbatim(strings.Join(p.Strategies, ", "))
	begun := &live{Stock: p.Stock, Plan: p.Strategies, clients: p.Clients, alone: p.Target != r.s.Lab.Target}
	change := func(change func()) {
		r.s.hub.Send("run", func() []hub.Message { change(); r.live = begun; return r.all() })
	}
	return r.s.jobs.follow(ctx, who, names, names, &begun.progress, change, func(ctx context.Context) error {
		var item struct {
			Product string `json:"product_code"`
		}
		_ = r.s.catalogue.get(ctx, "/stock/1", &item, nil) // the run itself will report that the service does not answer
		change(func() { begun.Product = item.Product })
		watch := &watch{runs: r, live: begun, plan: p}
		trials, err := comparison.Run(ctx, p, watch)
		watch.stopSampling()
		change(func() {
			// End has kept the results. A user who has cleared the table since then does not want the histories.
			for i := range min(len(trials), len(r.results)) {
				r.results[len(r.results)-1-i].history = trials[len(trials)-1-i].History
			}
		})
		return err
	})
}

// all returns the messages that draw the whole page. The hub's mutex must be locked.
func (r *runs) all() []hub.Message {
	return []hub.Message{hub.NewMessage("run", r.live), r.s.part("run", "results", r.table())}
}
