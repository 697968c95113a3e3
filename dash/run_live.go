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
	Product string    `json:"product"` // the product code
	Stock   int       `json:"stock"`
	Plan    []string  `json:"plan"` // the strategies
	Series  []*series `json:"series"`
	clients int
	alone   bool // only the first replica gets requests
	ended   int  // the number of strategies with a result
	owner   atomic.Pointer[owner]
}

type series struct {
	Strategy string     `json:"strategy"`
	Total    int        `json:"total"`
	Points   []point    `json:"points"`
	Pictures []api.Text `json:"pictures"` // of the system, with names for the numbers of a point
	Ended    *ended     `json:"ended"`    // null while the strategy runs
	start    time.Time  // of the load
}

// ended has the result of one strategy.
type ended struct {
	Class    string   `json:"class"` // holds, broken or inconclusive
	Headline api.Text `json:"headline"`
	Rate     float64  `json:"rate"` // requests per second
	P99      float64  `json:"p99"`  // in ms
}

// point is one sample of a strategy. The picture, the counters and the charts show it together, so all its numbers are
// of one moment: the stock was read just after the requests were counted. If fewer than Sold pieces are then missing
// from the stock, updates were lost: a sale in progress is never the cause.
type point struct {
	At       float64        `json:"t"` // in seconds
	Done     int            `json:"done"`
	Sold     int            `json:"sold"` // pieces
	Failed   int            `json:"failed"`
	Left     *int           `json:"left"` // the stock; null if unknown
	Rate     float64        `json:"rate"` // requests per second, since the last point
	P50      float64        `json:"p50"`  // of the requests since the last point, in ms
	P99      float64        `json:"p99"`
	Replicas map[string]int `json:"replicas"`
	Owner    *owner         `json:"owner"`   // the present owner of the lock; null if unknown
	Picture  int            `json:"picture"` // of the series' pictures
}

type owner struct {
	Task    string `json:"task"`
	Replica string `json:"replica"`
}

const (
	// The points of a series are a hundredth of its time apart, so a long one has no more than 1000.
	shortInterval, pointsInTime = 25 * time.Millisecond, 100
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
	cancel   context.CancelFunc // ends the samples
	sampling sync.WaitGroup
	begin    func() // called when the load begins: before, the stock is that of the last run

	mu   sync.Mutex
	seen load.Progress   // the newest
	took []time.Duration // the response times since the last point
}

func (w *watch) stopSampling() {
	if w.cancel != nil {
		w.cancel()
	}
	w.sampling.Wait()
}

// Begin adds a series of points for the strategy. The first one is before the first request.
func (w *watch) Begin(strategy string, _, _ int) {
	w.stopSampling()
	ctx, cancel := context.WithCancel(w.runs.s.lifetime)
	w.cancel = cancel
	l := w.live
	w.seen, w.took = load.Progress{}, nil
	l.owner.Store(nil)
	w.runs.s.hub.Send("run", func() []hub.Message {
		w.now = &series{Strategy: strategy, Total: w.plan.Clients * w.plan.Loops}
		l.Series = append(l.Series, w.now)
		w.add(point{Left: &l.Stock})
		return []hub.Message{hub.NewMessage("run", l)}
	})
	w.begin = sync.OnceFunc(func() {
		w.now.start = time.Now()
		w.sampling.Go(func() { w.sample(ctx) })
	})
	if w.plan.Hold < slowHold {
		return
	}
	for _, base := range w.runs.s.Lab.Replicas {
		w.sampling.Go(func() {
			_ = api.Client{Base: base, Token: w.runs.s.Lab.Token, HTTP: w.runs.s.catalogue.nginx.HTTP}.Follow(ctx, l.follow)
		})
	}
}

// Progress keeps the progress for the next point.
func (w *watch) Progress(p load.Progress) {
	w.mu.Lock()
	w.seen, w.took = p, append(w.took, p.Took...)
	w.mu.Unlock()
	w.begin()
}

// sample adds points in the background, so that a slow database does not delay the load.
func (w *watch) sample(ctx context.Context) {
	nginx := api.Client{Base: w.plan.Target, HTTP: w.runs.s.catalogue.nginx.HTTP}
	for load.Sleep(ctx, w.interval()) == nil {
		next := w.counted()
		reading, cancel := context.WithTimeout(ctx, time.Second)
		if left, err := nginx.Count(reading, w.now.Strategy, 1); err == nil {
			next.Left = &left
		}
		cancel()
		if ctx.Err() == nil {
			w.runs.s.hub.Send("run", func() []hub.Message { return []hub.Message{w.add(next)} })
		}
	}
}

// interval returns the time until the next point.
func (w *watch) interval() time.Duration {
	every := max(shortInterval, time.Since(w.now.start)/pointsInTime)
	if w.runs.s.hub.Listeners("run") > manyPages {
		return max(every, longInterval)
	}
	return every
}

// counted returns the next point of the series, without the stock.
func (w *watch) counted() point {
	w.mu.Lock()
	p, took, before := w.seen, slices.Sorted(slices.Values(w.took)), w.now.Points[len(w.now.Points)-1]
	w.took = nil
	w.mu.Unlock()
	at := time.Since(w.now.start).Seconds()
	ms := func(p float64) float64 { return float64(measure.Percentile(took, p).Microseconds()) / 1000 }
	return point{
		At: at, Done: p.Done, Sold: p.Sold * max(1, w.plan.Qty), Failed: p.Failed,
		Rate: float64(p.Done-before.Done) / max(at-before.At, 1e-3), P50: ms(0.5), P99: ms(0.99),
		Replicas: p.Replicas, Owner: w.live.owner.Load(),
	}
}

// add adds a point to the series, and its picture if the series does not have it. The hub's mutex must be locked.
func (w *watch) add(p point) hub.Message {
	picture, fresh := w.runs.picture(w.live, w.now.Strategy, p), []api.Text(nil)
	if p.Picture = slices.Index(w.now.Pictures, picture); p.Picture < 0 {
		p.Picture, fresh = len(w.now.Pictures), []api.Text{picture}
	}
	w.now.Pictures, w.now.Points = append(w.now.Pictures, fresh...), append(w.now.Points, p)
	return hub.NewMessage("tick", series{Strategy: w.now.Strategy, Total: w.now.Total, Points: []point{p}, Pictures: fresh, Ended: w.now.Ended})
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

// End shows the verdict on a strategy, with the numbers of its last point, and its row in the table.
func (w *watch) End(result measure.Result) {
	w.stopSampling()
	r, last := w.runs, w.counted()
	last.Done, last.Sold, last.Failed, last.Left, last.Owner = result.Samples, result.Sold, result.Errors, result.Remaining, nil
	r.s.hub.Send("run", func() []hub.Message {
		w.now.Ended = &ended{result.Class(), report.Headline(result), result.Rate(), result.P99MS}
		w.live.ended++
		r.next++
		r.results = append(r.results, kept{ID: r.next, Result: result})
		r.results = r.results[max(0, len(r.results)-maxResults):]
		return []hub.Message{w.add(last), r.s.part("run", "results", r.table())}
	})
}
