package dash

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"oversell/api"
	"oversell/dash/hub"
	"oversell/lab/comparison"
	"oversell/lab/load"
	"oversell/lab/measure"
	"oversell/view/report"
)

// live describes the running run, or the last run.
type live struct {
	progress
	Product string          `json:"product"` // the product code
	Stock   int             `json:"stock"`
	Plan    []string        `json:"plan"` // the strategies
	Series  []*series       `json:"series"`
	last    time.Time       // of the last point
	before  load.Progress   // the progress at the last point
	took    []time.Duration // the response times since then
	clients int
	alone   bool         // only the first replica gets requests
	ended   int          // the number of strategies with a result
	sold    atomic.Int64 // pieces
	count   atomic.Pointer[count]
	owner   atomic.Pointer[owner]
}

type series struct {
	Strategy string   `json:"strategy"`
	Total    int      `json:"total"`
	Points   []point  `json:"points"`
	Ended    *ended   `json:"ended"` // null while the strategy runs
	Stage    api.Text `json:"stage"` // the newest picture
	start    time.Time
}

// ended has the result of one strategy.
type ended struct {
	Class    string   `json:"class"` // holds, broken or inconclusive
	Headline api.Text `json:"headline"`
	Rate     float64  `json:"rate"` // requests per second
	P99      float64  `json:"p99"`  // in ms
}

type point struct {
	At       float64        `json:"t"` // in seconds
	Done     int            `json:"done"`
	Sold     int            `json:"sold"` // pieces
	Failed   int            `json:"failed"`
	Count    *count         `json:"count"` // null if unknown
	Rate     float64        `json:"rate"`  // requests per second, since the last point
	P50      float64        `json:"p50"`   // of the requests since the last point, in ms
	P99      float64        `json:"p99"`
	Replicas map[string]int `json:"replicas"`
	Owner    *owner         `json:"owner"` // the present owner of the lock; null if unknown
}

type owner struct {
	Task    string `json:"task"`
	Replica string `json:"replica"`
}

// count has the stock (Left) and the pieces sold before that stock was read (Sold). If fewer than
// Sold pieces are missing from the stock, updates were lost: a sale in progress is never the cause.
type count struct {
	Left int `json:"left"`
	Sold int `json:"sold"`
}

const (
	// The points of a series are a hundredth of its time apart, so a long one has no more than 1000.
	shortInterval, pointsInTime = 25 * time.Millisecond, 100
	// stageInterval is the time between two pictures of the stage, which are longer than a point.
	stageInterval = 200 * time.Millisecond
	// longInterval applies above manyPages open pages: browsers may run on the lab's machine.
	longInterval, manyPages = time.Second, 20
	// slowHold is the shortest hold of a lock that a viewer can follow. If the hold is shorter, the
	// page does not show the lock's owner: receiving the replicas' steps would slow down the run.
	slowHold = 20 * time.Millisecond
)

type watch struct {
	runs     *runs
	live     *live
	plan     comparison.Plan
	now      *series
	cancel   context.CancelFunc // ends the reading of the stock
	sampling sync.WaitGroup
	begin    func() // called when the load begins: before, the stock is that of the last run
}

func (w *watch) stopSampling() {
	if w.cancel != nil {
		w.cancel()
	}
	w.sampling.Wait()
}

// Begin adds a series of points for the strategy.
func (w *watch) Begin(strategy string, _, _ int) {
	w.stopSampling()
	ctx, cancel := context.WithCancel(w.runs.s.lifetime)
	w.cancel = cancel
	l := w.live
	w.now = &series{Strategy: strategy, Points: []point{}, start: time.Now()}
	l.count.Store(nil)
	l.owner.Store(nil)
	l.sold.Store(0)
	w.runs.s.hub.Send("run", func() []hub.Message {
		l.Series, l.last, l.before, l.took = append(l.Series, w.now), time.Time{}, load.Progress{}, nil
		return []hub.Message{hub.NewMessage("run", l)}
	})
	w.begin = sync.OnceFunc(func() { w.sampling.Go(func() { w.sample(ctx) }) })
	if w.plan.Hold < slowHold {
		return
	}
	for _, base := range w.runs.s.Lab.Replicas {
		w.sampling.Go(func() {
			_ = api.Client{Base: base, Token: w.runs.s.Lab.Token, HTTP: w.runs.s.catalogue.nginx.HTTP}.Follow(ctx, l.follow)
		})
	}
}

// percentiles returns a function for the percentiles of the response times since the last point, in ms. A new point begins.
func (l *live) percentiles() func(p float64) float64 {
	took := slices.Sorted(slices.Values(l.took))
	l.took = nil
	return func(p float64) float64 { return float64(measure.Percentile(took, p).Microseconds()) / 1000 }
}

// sample reads the stock in the background, so that a slow database does not delay the progress.
func (w *watch) sample(ctx context.Context) {
	for ctx.Err() == nil {
		w.readStock(ctx, time.Second)
		select {
		case <-ctx.Done():
		case <-time.After(w.now.interval()):
		}
	}
}

// interval returns the time until the next point.
func (s *series) interval() time.Duration {
	return max(shortInterval, time.Since(s.start)/pointsInTime)
}

func (w *watch) readStock(ctx context.Context, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	sold := int(w.live.sold.Load())
	nginx := api.Client{Base: w.plan.Target, HTTP: w.runs.s.catalogue.nginx.HTTP}
	left, err := nginx.Count(ctx, w.now.Strategy, 1)
	if err != nil {
		w.live.count.Store(nil)
		return
	}
	w.live.count.Store(&count{left, sold})
}

// Progress adds a point to the series of the strategy, if the last point is old enough.
func (w *watch) Progress(p load.Progress) {
	l := w.live
	w.begin()
	l.took = append(l.took, p.Took...)
	every := w.now.interval()
	if w.runs.s.hub.Listeners("run") > manyPages {
		every = max(every, longInterval)
	}
	sold := p.Sold * max(1, w.plan.Qty)
	l.sold.Store(int64(sold))
	if p.Done == p.Total {
		w.stopSampling() // the last point must include all sales
		w.readStock(w.runs.s.lifetime, 10*time.Second)
	}
	now := time.Now()
	if now.Sub(l.last) < every && p.Done < p.Total {
		return
	}
	at := now.Sub(w.now.start)
	since := at
	if !l.last.IsZero() {
		since = now.Sub(l.last)
	}
	ms := l.percentiles()
	next := point{
		At: at.Seconds(), Done: p.Done, Sold: sold, Failed: p.Failed, Count: l.count.Load(),
		Rate: float64(p.Done-l.before.Done) / max(since.Seconds(), 1e-3), P50: ms(0.5), P99: ms(0.99),
		Replicas: p.Replicas, Owner: l.owner.Load(),
	}
	w.runs.s.hub.Send("run", func() []hub.Message {
		l.last, l.before = now, p
		w.now.Total = p.Total
		w.now.Points = append(w.now.Points, next)
		messages := []hub.Message{hub.NewMessage("tick", struct {
			Total int   `json:"total"`
			Point point `json:"point"`
		}{p.Total, next})}
		if now.Sub(w.runs.drawn) > stageInterval || p.Done == p.Total {
			messages = append(messages, w.runs.stage())
		}
		return messages
	})
}

func (l *live) follow(kind string, data []byte) {
	var e api.StepEvent
	if kind != api.StreamStep || json.Unmarshal(data, &e) != nil || e.Key != api.Key(1) {
		return
	}
	switch had := l.owner.Load(); e.Step {
	case api.Granted:
		l.owner.Store(&owner{e.Owner, e.Replica})
	case api.Released:
		if had != nil && had.Task == e.Owner {
			l.owner.CompareAndSwap(had, nil)
		}
	}
}

// End shows the verdict on a strategy, and its row in the table.
func (w *watch) End(result measure.Result) {
	r := w.runs
	r.s.hub.Send("run", func() []hub.Message {
		w.now.Ended = &ended{result.Class(), report.Headline(result), result.Rate(), result.P99MS}
		w.live.ended++
		r.next++
		r.results = append(r.results, kept{ID: r.next, Result: result})
		r.results = r.results[max(0, len(r.results)-maxResults):]
		return []hub.Message{hub.NewMessage("ended", w.now.Ended), r.s.part("run", "results", r.table()), r.stage()}
	})
}
