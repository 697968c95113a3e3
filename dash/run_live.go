package dash

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"oversell/lab/comparison"
	"oversell/lab/history"
	"oversell/lab/load"
	"oversell/lab/replica"
	"oversell/lab/report"
)

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

// Pages get a point in so long; more seldom when many look, for what draws them shares
// the machine with the lab.
const (
	often, seldom = 250 * time.Millisecond, time.Second
	many          = 20
	// mostPoints of a series are kept: then every second one goes.
	mostPoints = 400
	// slow is a hold that the eye can follow. Then the replicas' steps tell who has the
	// lock; of thousands in a second they would cost what is measured here.
	slow = 20 * time.Millisecond
)

// watch is told by the lab how it goes, and tells the pages.
type watch struct {
	runs     *runs
	plan     comparison.Plan
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
				_ = replica.Replica{Base: base, Token: w.runs.s.Shop.Token, HTTP: http.DefaultClient}.Follow(ctx, l.hear)
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
