package dash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"oversell/lab"
	"oversell/lab/history"
	"oversell/lab/load"
	"oversell/lab/replica"
	"oversell/lab/report"
)

// runs is the page that loads strategies: what runs, and the results that are kept.
type runs struct {
	s *Server
	// What follows is changed and read in the hub's turn only: see hub.send.
	live    *live
	results []kept
	next    int
}

// live is the run that is on, or the last one.
type live struct {
	Running bool      `json:"running"`
	Who     string    `json:"who"`
	Since   time.Time `json:"since"`
	Product string    `json:"product"` // its code in the shop
	Stock   int       `json:"stock"`
	Qty     int       `json:"qty"`
	Of      int       `json:"of"` // how many strategies it will have
	Series  []*series `json:"series"`
	Error   *Text     `json:"error,omitempty"`
	now     *series   // the last of them
	every   time.Duration
	last    time.Time
	before  load.Progress
	sold    atomic.Int64 // pieces, by the last progress
	count   atomic.Pointer[count]
	owner   atomic.Pointer[owner]
	sampled context.CancelFunc
}

// series is a strategy's run as a page draws it.
type series struct {
	Strategy string  `json:"strategy"`
	Total    int     `json:"total"`
	Points   []point `json:"points"`
	start    time.Time
}

// point is a moment of a run.
type point struct {
	At       float64        `json:"t"` // seconds
	Done     int            `json:"done"`
	Sold     int            `json:"sold"` // pieces
	Failed   int            `json:"failed"`
	Count    *count         `json:"count"` // null: not known
	Rate     float64        `json:"rate"`  // answers in a second, since the point before
	P50      float64        `json:"p50"`   // of these, in ms
	P99      float64        `json:"p99"`
	Replicas map[string]int `json:"replicas"`
	Last     load.Sale      `json:"last"`
	Owner    *owner         `json:"owner"` // who holds the lock now; null: not known
}

// owner is the task of a replica that was granted the lock.
type owner struct {
	Task    string `json:"task"`
	Replica string `json:"replica"`
}

// count is the stock as the database told it, and what was known to be sold before it was
// asked. So whatever is sold is missing from it: if it is not, updates were lost, and no
// sale that was under way can look like one.
type count struct {
	Left int `json:"left"`
	Sold int `json:"sold"`
}

// kept is a result that stays for comparison.
type kept struct {
	ID      int
	Result  report.Result
	history history.History
}

// Pages get a point in so long; more seldom when many look, for what draws them shares
// the machine with the lab.
const (
	often, seldom = 250 * time.Millisecond, time.Second
	many          = 20
	// mostPoints of a series are kept: then every second one goes.
	mostPoints = 400
	// mostResults are kept with their samples.
	mostResults = 60
	// slow is a hold that the eye can follow. Then the replicas' steps tell who has the
	// lock; of thousands in a second they would cost what is measured here.
	slow = 20 * time.Millisecond
)

func newRuns(s *Server) *runs {
	r := &runs{s: s, live: &live{}}
	s.hub.open("run", r.all)
	return r
}

func (r *runs) route() {
	s := r.s
	s.routes.HandleFunc("GET /{$}", func(w http.ResponseWriter, req *http.Request) {
		groups, err := s.ladder.groups(req.Context())
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
func (r *runs) plan(req request) (lab.Plan, error) {
	p := lab.Plan{
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
	cards, err := r.s.ladder.all(ctx)
	if err != nil {
		return refusal{http.StatusServiceUnavailable, unreachable(err)}
	}
	for _, id := range p.Strategies {
		if !slices.ContainsFunc(cards, func(c card) bool { return c.ID == id }) {
			return bad(fmt.Sprintf("There is no strategy %q.", id), fmt.Sprintf("没有策略 %q。", id))
		}
	}
	names := strings.Join(p.Strategies, ", ")
	return r.s.desk.take(ctx, req.Who, Text{names, names}, func(ctx context.Context) { r.work(ctx, p, req.Who) })
}

// work loads the strategies one after the other.
func (r *runs) work(ctx context.Context, p lab.Plan, who string) {
	var item struct {
		Product string `json:"product_code"`
	}
	_ = r.s.ladder.ask(ctx, "/stock/1", &item) // a shop that does not answer is what the run shows
	begun := &live{Running: true, Who: who, Product: item.Product, Since: time.Now(), Stock: p.Stock, Qty: max(1, p.Qty), Of: len(p.Strategies), every: often}
	r.s.hub.send("run", func() []message { r.live = begun; return r.all() })
	watch := &watch{runs: r, plan: p}
	defer watch.close()
	trials, err := lab.Run(ctx, p, watch)
	if errors.Is(context.Cause(ctx), errStopped) {
		err = nil // its results say so
	}
	r.s.hub.send("run", func() []message {
		begun.Running = false
		if err != nil {
			begun.Error = &Text{err.Error(), err.Error()}
		}
		for _, t := range trials {
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

// watch is told by the lab how it goes, and tells the pages.
type watch struct {
	runs     *runs
	plan     lab.Plan
	sampling sync.WaitGroup
	begin    func() // to sample: not before the load, for until then the stock is the last run's
}

func (w *watch) close() {
	if w.runs.live.sampled != nil {
		w.runs.live.sampled()
	}
	w.sampling.Wait()
}

func (w *watch) Begin(strategy string, _, _ int) {
	w.close()
	ctx, cancel := context.WithCancel(w.runs.s.lifetime)
	l := w.runs.live
	now := &series{Strategy: strategy, Points: []point{}, start: time.Now()}
	w.runs.s.hub.send("run", func() []message {
		l.Series, l.now, l.every, l.last, l.before, l.sampled = append(l.Series, now), now, often, time.Time{}, load.Progress{}, cancel
		l.count.Store(nil)
		l.owner.Store(nil)
		l.sold.Store(0)
		return []message{say("run", l)}
	})
	w.begin = sync.OnceFunc(func() { w.sampling.Go(func() { w.sample(ctx, l, strategy) }) })
	if w.plan.Hold >= slow {
		for _, base := range w.runs.s.Shop.Replicas {
			w.sampling.Go(func() {
				_ = replica.Replica{Base: base, HTTP: http.DefaultClient}.Follow(ctx, l.hear)
			})
		}
	}
}

// sample reads the stock as the load goes on. In the background: a database that is down
// must not hold up the load's own count.
func (w *watch) sample(ctx context.Context, l *live, strategy string) {
	for ctx.Err() == nil {
		w.look(ctx, l, strategy)
		select {
		case <-ctx.Done():
		case <-time.After(often):
		}
	}
}

func (w *watch) look(ctx context.Context, l *live, strategy string) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	sold := int(l.sold.Load())
	shop := replica.Replica{Base: w.plan.Target, HTTP: http.DefaultClient}
	if left, err := shop.Count(ctx, strategy, 1); err == nil {
		l.count.Store(&count{left, sold})
	} else {
		l.count.Store(nil)
	}
}

func (w *watch) Progress(p load.Progress) {
	l := w.runs.live
	w.begin()
	every := l.every
	if w.runs.s.hub.listeners("run") > many {
		every = max(every, seldom)
	}
	l.sold.Store(int64(p.Sold * max(1, w.plan.Qty)))
	if p.Done == p.Total {
		w.close() // the last word is for all that was sold
		w.look(w.runs.s.lifetime, l, l.now.Strategy)
	}
	now := time.Now()
	if now.Sub(l.last) < every && p.Done < p.Total {
		return
	}
	took := p.Took.Since(&l.before.Took)
	at := now.Sub(l.now.start)
	since := at
	if !l.last.IsZero() {
		since = now.Sub(l.last)
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	next := point{
		At: at.Seconds(), Done: p.Done, Sold: p.Sold * max(1, w.plan.Qty), Failed: p.Failed, Count: l.count.Load(),
		Rate: float64(p.Done-l.before.Done) / max(since.Seconds(), 1e-3), P50: ms(took.Quantile(0.5)), P99: ms(took.Quantile(0.99)),
		Replicas: p.Replicas, Last: p.Last, Owner: l.owner.Load(),
	}
	w.runs.s.hub.send("run", func() []message {
		l.now.Total = p.Total
		l.last, l.before = now, p
		l.now.Points = append(l.now.Points, next)
		if len(l.now.Points) > mostPoints {
			half := l.now.Points[:0]
			for i, old := range l.now.Points {
				if i%2 == 0 {
					half = append(half, old)
				}
			}
			l.now.Points, l.every = half, 2*l.every
		}
		return []message{say("tick", struct {
			Total int   `json:"total"`
			Point point `json:"point"`
		}{p.Total, next})}
	})
}

// hear learns from a step who owns the lock.
func (l *live) hear(kind string, data []byte) {
	var e history.Event
	if kind != "step" || json.Unmarshal(data, &struct {
		*history.Event
		At any `json:"at"` // a time of day, which nobody needs here
	}{Event: &e}) != nil || e.Key != replica.Key(1) {
		return
	}
	switch had := l.owner.Load(); e.Step {
	case "granted":
		l.owner.Store(&owner{e.Owner, e.Replica})
	case "released":
		if had != nil && had.Task == e.Owner {
			l.owner.CompareAndSwap(had, nil)
		}
	}
}

func (w *watch) End(report.Result) {}

// row is a result as the table shows it.
type row struct {
	kept
	Share float64 // of the best throughput, in per cent
	Lost  float64 // of the most lost updates, in per cent
}

// shown are the results with the newest first. It is called in the hub's turn.
func (r *runs) shown() []row {
	best, most := 1e-9, 1
	for _, k := range r.results {
		best, most = max(best, k.Result.ThroughputPerS), max(most, k.Result.LostUpdates)
	}
	rows := make([]row, 0, len(r.results))
	for _, k := range slices.Backward(r.results) {
		rows = append(rows, row{k, 100 * k.Result.ThroughputPerS / best, 100 * max(0, float64(k.Result.LostUpdates)) / float64(most)})
	}
	return rows
}

// forget clears the table.
func (r *runs) forget(context.Context, request) error {
	r.s.hub.send("run", func() []message { r.results = nil; return r.all() })
	return nil
}

// download writes a result, or with all.json and so on all of them.
func (r *runs) download(w http.ResponseWriter, req *http.Request) {
	name, kind, _ := strings.Cut(req.PathValue("file"), ".")
	var chosen []kept
	r.s.hub.send("run", func() []message {
		for _, k := range r.results {
			if name == "all" || strconv.Itoa(k.ID) == name {
				chosen = append(chosen, k)
			}
		}
		return nil
	})
	var results []report.Result
	var histories []history.History
	for _, k := range chosen {
		results, histories = append(results, k.Result), append(histories, k.history)
	}
	var err error
	header := w.Header()
	switch {
	case len(chosen) == 0:
		r.s.sorry(w, req, http.StatusNotFound, Text{"This result is not kept any more.", "这个结果已不再保留。"})
		return
	case kind == "json":
		header.Set("Content-Type", "application/json")
		header.Set("Content-Disposition", `attachment; filename="oversell-`+name+`.json"`)
		err = report.JSON(w, results)
	case kind == "csv":
		header.Set("Content-Type", "text/csv")
		header.Set("Content-Disposition", `attachment; filename="oversell-`+name+`.csv"`)
		err = report.JTL(w, histories)
	case kind == "html":
		header.Set("Content-Type", "text/html; charset=utf-8")
		// It has its style in itself, and a policy of its own.
		header.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
		header.Set("Content-Disposition", `attachment; filename="oversell-`+name+`.html"`)
		err = report.HTML(w, results)
	default:
		r.s.sorry(w, req, http.StatusNotFound, Text{"There are .json, .csv and .html.", "只有 .json、.csv 和 .html。"})
		return
	}
	if err != nil {
		panic(http.ErrAbortHandler) // half a file is none
	}
}
