package handlers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"oversell/api"
	"oversell/locks"
)

// The primitives of the tutorial's 3.9.5 to 3.9.7 and 4.6.3 to 4.6.7, one route
// for each thing to do with them. A page opened twice is two tasks: each request
// is an owner of its own.
const (
	defaultName   = "class"
	primitiveWait = 30 * time.Second
	// Only Redis lets a request choose its lease. ZooKeeper's is the session's.
	leasing = "redis"
)

func (s *Service) routePrimitives() {
	for path, serve := range map[string]gin.HandlerFunc{
		"/test/read":                 s.testRead,
		"/test/write":                s.testWrite,
		"/test/semaphore":            s.testSemaphore,
		"/test/latch":                s.testLatch,
		"/test/countdown":            s.testCountdown,
		"/test/barrier/set":          s.testBarrierSet,
		"/test/barrier/wait":         s.testBarrierWait,
		"/test/barrier/remove":       s.testBarrierRemove,
		"/test/double-barrier/enter": s.testDoubleBarrierEnter,
		"/test/double-barrier/leave": s.testDoubleBarrierLeave,
		"/test/counter":              s.testCounter,
		"/test/counter/events":       s.streamCounter,
	} {
		s.engine.GET(path, serve)
		s.engine.POST(path, serve)
	}
}

// done is how every answer begins. Times are in milliseconds.
type done struct {
	Outcome  api.Outcome `json:"outcome"`
	Backend  string      `json:"backend"`
	Name     string      `json:"name"`
	Replica  string      `json:"replica"`
	WaitedMS float64     `json:"waited_ms"`
}

// visit is one request for a primitive: its parameters, and how long it waited.
// Its steps go to those who listen to /events, under the name of the visitor.
type visit struct {
	*params
	service    *Service
	gin        *gin.Context
	primitives locks.Primitives
	request    locks.Request
	visitor    string // empty: the owner
	began      time.Time
	granted    time.Time // zero while it waits
}

// visit reads what all routes have: the backend, of those that have such a
// primitive, and the name. more are the route's own parameters.
func (s *Service) visit(c *gin.Context, has func(locks.Primitives) bool, more ...string) *visit {
	v := &visit{
		params:  newParams(c.Request, slices.Concat([]string{"backend", "name"}, more, []string{"visitor"})),
		service: s, gin: c, began: time.Now(),
	}
	if v.err != nil {
		return v
	}
	v.primitives = s.backendWith(v.params, has)
	v.request = locks.Request{Key: v.word("name", defaultName), Owner: s.newOwner()}
	if v.values.Has("visitor") {
		v.visitor = v.word("visitor", "")
	}
	return v
}

// backendWith is the backend that the request names, or the first that has it.
func (s *Service) backendWith(p *params, has func(locks.Primitives) bool) locks.Primitives {
	var names []string
	var having []locks.Primitives
	for _, b := range s.Primitives {
		if has(b) {
			names, having = append(names, b.Backend), append(having, b)
		}
	}
	if len(having) > 0 && !p.values.Has("backend") {
		return having[0]
	}
	id := p.text("backend", "")
	for _, b := range having {
		if b.Backend == id {
			return b
		}
	}
	p.fail("backend", id, "one that has this: "+strings.Join(names, ", "))
	return locks.Primitives{}
}

// waits reads how long the request waits at most.
func (v *visit) waits() { v.request.Wait = v.duration("wait", primitiveWait, 0) }

// leases reads how long the backend keeps what nobody renews.
func (v *visit) leases() {
	switch {
	case !v.values.Has("lease"):
	case v.primitives.Backend != leasing:
		v.fail("lease", v.text("lease", ""), "left out for "+v.primitives.Backend+"; a lease per request has: "+leasing)
	default:
		v.request.Lease = v.duration("lease", 0, minLease)
	}
}

// refused answers bad parameters. Nothing was touched by then.
func (v *visit) refused() bool {
	if v.err != nil {
		v.service.badRequest(v.gin, v.err)
		return true
	}
	v.began = time.Now()
	v.trace(api.Asked)
	return false
}

// trace tells a step of the visitor. The strategy is the route, such as /test/read, and
// the key the name.
func (v *visit) trace(step api.Step) {
	locks.Trace(v.service.traced(v.context(), v.gin.FullPath()), step, v.request.Key, cmp.Or(v.visitor, v.request.Owner), 0)
}

func (v *visit) context() context.Context { return v.gin.Request.Context() }

func (v *visit) waited() time.Duration {
	if v.granted.IsZero() {
		return time.Since(v.began)
	}
	return v.granted.Sub(v.began)
}

// failed answers an error, if it is one.
func (v *visit) failed(err error) bool {
	if err == nil {
		return false
	}
	p := describe(err)
	p.Name, p.WaitedMS = v.request.Key, ms(v.waited())
	if !v.granted.IsZero() {
		p.HeldMS = ms(time.Since(v.granted))
	}
	if p.Backend == "" {
		p.Backend = v.primitives.Backend
	}
	v.observe(p.Outcome)
	v.service.problem(v.gin, p)
	return true
}

func (v *visit) done(outcome api.Outcome) done {
	v.observe(outcome)
	return done{
		Outcome: outcome, Backend: v.primitives.Backend, Name: v.request.Key,
		Replica: v.service.Replica, WaitedMS: ms(v.waited()),
	}
}

func (v *visit) observe(outcome api.Outcome) {
	primitive := strings.TrimPrefix(v.gin.FullPath(), "/test/")
	v.service.metrics.primitives.WithLabelValues(primitive, v.primitives.Backend, string(outcome)).Inc()
}

// answer ends a request that held nothing.
func (v *visit) answer(outcome api.Outcome) { v.gin.JSON(http.StatusOK, v.done(outcome)) }

// keep works under the hold and gives it back on every way out, also when the
// client has hung up. ErrLost: somebody else may have had it meanwhile. warning:
// it could not be given back.
func keep(ctx context.Context, hold *locks.Lock, work func(context.Context) error) (warning string, err error) {
	defer func() {
		released := hold.Release(ctx)
		switch {
		case released == nil || err != nil:
		case errors.Is(released, locks.ErrNotHeld):
			err = fmt.Errorf("%w: %w", locks.ErrLost, released)
		default:
			warning = "it could not be released and must run out: " + released.Error()
		}
	}()
	err = work(hold.Context())
	if lost := hold.Verify(); errors.Is(lost, locks.ErrLost) {
		err = lost
	}
	return "", err
}
