package player

import (
	"context"
	"errors"
	"time"

	"oversell/api"
	"oversell/lab/chaos"
	"oversell/lab/history"
	"oversell/lab/rig"
)

// Sale is the request of a client in a Walk. Paused is set if the request is stopped, Op if it has ended, and neither
// while it runs.
type Sale struct {
	Paused *api.Paused
	Op     *history.Op
	Sent   []string // the commands since its last step, if it is not stopped
}

// Walk carries out a plan that nobody knows in advance: one move after the other, on one strategy. The clients A and B have a
// replica each.
type Walk struct {
	Product int64 // that the clients buy
	*run
}

// Unrecorded opens a lab for walks. It records no steps, because requests that stop at each step show them.
func Unrecorded(r *rig.Rig) *Testbed {
	bed := &Testbed{Rig: r, http: api.Direct(), rec: &recorder{start: time.Now()}}
	bed.products.Store(7000)
	return bed
}

// Walk begins a walk with a new product. A lease of 0 means the default lease of the replicas.
func (bed *Testbed) Walk(ctx context.Context, strategy string, pieces int, lease time.Duration) (*Walk, error) {
	product, err := bed.AddProduct(ctx, 0, pieces)
	if err != nil {
		return nil, err
	}
	s := Subject{Card: api.Card{ID: strategy}, Product: product, lease: lease}
	return &Walk{product, bed.Player([chaos.Clients]int{0, 1, 0, 1}, s).runs[0]}, nil
}

// Stock returns the stock in the database.
func (w *Walk) Stock(ctx context.Context) (int, error) {
	return w.bed.Replica(0).Count(ctx, w.subject.Card.ID, w.Product)
}

// Do carries out a move. It returns when the request of the move has stopped or ended, or seems to wait.
func (w *Walk) Do(ctx context.Context, m chaos.Move) error { return w.Play(ctx, chaos.Plan{m}) }

// Settle gives the request of a client the time to stop or to end.
func (w *Walk) Settle(ctx context.Context, client int) error { return w.settle(ctx, w.clients[client]) }

// Look returns the state of the request that A or B has begun.
func (w *Walk) Look(ctx context.Context, client int) (s Sale, err error) {
	b := w.clients[client]
	if w.gone[b.on] { // it would not answer
		return s, nil
	}
	if !b.running() { // before the failpoints are read, so that these have all commands of a request that has ended
		s.Op = &b.op
	}
	f, err := w.bed.Replica(b.on).Failpoints(ctx)
	for _, sender := range f.Senders {
		if sender.Key == w.subject.Key() {
			s.Sent = sender.Commands
		}
	}
	b.stopped = "" // a replica resumes a request after half an hour
	for _, at := range f.Paused {
		if at.Key == w.subject.Key() {
			b.owner, b.stopped, s.Paused = at.Owner, at.Step, &at
		}
	}
	return s, err
}

// Close ends all faults, lets the requests run to their ends, and waits for their answers.
func (w *Walk) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), maxWait)
	defer cancel()
	defer w.bed.http.CloseIdleConnections()
	if len(w.injected) > 0 {
		return w.Finish(ctx)
	}
	err := errors.Join(w.bed.Replica(0).ResumeAll(ctx), w.bed.Replica(1).ResumeAll(ctx))
	w.finish()
	return err
}
