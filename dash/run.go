package dash

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"oversell/lab/comparison"
)

// runs is the page that loads strategies: what runs, and the results that are kept.
type runs struct {
	s *Server
	// What follows is changed and read in the hub's turn only: see hub.send.
	live    *live
	results []kept
	next    int
}

func newRuns(s *Server) *runs {
	r := &runs{s: s, live: &live{}}
	s.hub.open("run", r.all)
	return r
}

func (r *runs) route() {
	s := r.s
	s.routes.HandleFunc("GET /{$}", func(w http.ResponseWriter, req *http.Request) {
		groups, err := s.catalogue.groups(req.Context())
		if err != nil {
			s.sorry(w, req, http.StatusServiceUnavailable, unreachable(err))
			return
		}
		s.show(w, req, "run", Text{"Run", "运行"}, groups)
	})
	s.routes.HandleFunc("POST /dash/run/start", s.guarded(r.start))
	s.routes.HandleFunc("POST /dash/run/forget", s.guarded(r.forget))
	s.routes.HandleFunc("GET /dash/results/{file}", r.download)
}

func unreachable(err error) Text {
	return Text{"The shop does not answer: " + err.Error(), "商店没有应答：" + err.Error()}
}

// plan reads the form.
func (r *runs) plan(req request) (comparison.Plan, error) {
	p := comparison.Plan{
		Target: r.s.Shop.Target, Token: r.s.Shop.Token, Strategies: req.Form["strategy"],
		Seed: time.Now().UnixMilli(), Machine: r.s.Machine, Versions: r.s.Versions,
	}
	if len(p.Strategies) == 0 {
		return p, bad("Choose a strategy first.", "请先选择策略。")
	}
	for name, to := range map[string]*int{"clients": &p.Clients, "loops": &p.Loops, "stock": &p.Stock} {
		n, err := strconv.Atoi(req.Form.Get(name))
		if err != nil {
			return p, bad(name+" must be a whole number.", name+" 必须是整数。")
		}
		*to = n
	}
	for name, to := range map[string]*time.Duration{"hold": &p.Hold, "wait": &p.Wait} {
		ms, err := strconv.Atoi(req.Form.Get(name))
		if err != nil || ms < 0 || ms > 60_000 {
			return p, bad(name+" must be 0 to 60000 ms.", name+" 必须在 0 到 60000 毫秒之间。")
		}
		*to = time.Duration(ms) * time.Millisecond
	}
	if err := p.Validate(); err != nil {
		return p, bad(err.Error(), err.Error())
	}
	return p, nil
}

func (r *runs) start(ctx context.Context, req request) error {
	p, err := r.plan(req)
	if err != nil {
		return err
	}
	cards, err := r.s.catalogue.all(ctx)
	if err != nil {
		return refusal{http.StatusServiceUnavailable, unreachable(err)}
	}
	for _, id := range p.Strategies {
		if !slices.ContainsFunc(cards, func(c card) bool { return c.ID == id }) {
			return bad(fmt.Sprintf("There is no strategy %q.", id), fmt.Sprintf("没有策略 %q。", id))
		}
	}
	names := strings.Join(p.Strategies, ", ")
	return r.s.jobs.take(ctx, req.Who, Text{names, names}, func(ctx context.Context, free func()) { r.work(ctx, p, req.Who, free) })
}

// work loads the strategies one after the other.
func (r *runs) work(ctx context.Context, p comparison.Plan, who string, free func()) {
	var item struct {
		Product string `json:"product_code"`
	}
	_ = r.s.catalogue.ask(ctx, "/stock/1", &item) // a shop that does not answer is what the run shows
	begun := &live{Running: true, Who: who, Product: item.Product, Since: time.Now(), Stock: p.Stock, Qty: max(1, p.Qty), Of: len(p.Strategies), every: often}
	r.s.hub.send("run", func() []message { r.live = begun; return r.all() })
	watch := &watch{runs: r, plan: p}
	primitivesPage, err := comparison.Run(ctx, p, watch)
	watch.close()
	if errors.Is(context.Cause(ctx), errStopped) {
		err = nil // its results say so
	}
	r.s.hub.send("run", func() []message {
		free()
		begun.Running = false
		if err != nil {
			begun.Error = &Text{err.Error(), err.Error()}
		}
		for _, t := range primitivesPage {
			r.next++
			r.results = append(r.results, kept{r.next, t.Result, t.History})
		}
		r.results = r.results[max(0, len(r.results)-mostResults):]
		return r.all()
	})
}

// all is everything that a page shows. It is called in the hub's turn.
func (r *runs) all() []message {
	return []message{say("run", r.live), r.s.part("run", "results", r.shown())}
}
