package handlers

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"oversell/api"
	"oversell/locks"
)

// These primitives are in tutorial 3.9.5 to 3.9.7 and 4.6.3 to 4.6.7. Each request is a new owner.
const (
	defaultName   = "class"
	primitiveWait = 30 * time.Second
	// leasing is the only backend with a lease per request. ZooKeeper has a lease per session.
	leasing = "redis"
)

type primitiveRoute struct {
	path string
	// has reports whether a backend supports the primitive. nil: the request names a strategy, not a backend.
	has func(locks.Primitives) bool
	// read reads the parameters of the operation, and returns the operation.
	read       func(*primitiveCall) operation
	parameters []string // the accepted parameters besides backend (or strategy), name and visitor
}

// operation is called only if all parameters are good. It returns the answer.
type operation func() (any, error)

func (s *Service) routePrimitives() {
	for _, r := range slices.Concat(lockRoutes(), gateRoutes(), counterRoutes()) {
		s.engine.GET("/test/"+r.path, s.answer(s.primitive(r)))
		s.engine.POST("/test/"+r.path, s.answer(s.primitive(r)))
	}
	for _, r := range handRoutes() {
		s.engine.GET("/test/"+r.path, s.rejectUnfit, s.answer(s.primitive(r))) // a lock may be a row of a table
		s.engine.POST("/test/"+r.path, s.rejectUnfit, s.answer(s.primitive(r)))
	}
}

type primitiveAnswer struct {
	Outcome  api.Outcome `json:"outcome"`
	Backend  string      `json:"backend"`
	Name     string      `json:"name"`
	Replica  string      `json:"replica"`
	WaitedMS float64     `json:"waited_ms"`
}

// primitiveCall is one request to a primitive. Its steps are sent to the listeners of /events.
type primitiveCall struct {
	*params
	service *Service
	gin     *gin.Context
	path    string
	locks.Primitives
	card    api.Card // of a lock by hand
	locker  locks.Locker
	request locks.Request
	total   int // of the permits of a semaphore, of which the request takes qty
	qty     int
	visitor string // the owner's name in the steps; empty means request.Owner
	began   time.Time
	granted time.Time // zero until the request gets the lock or the permits
}

func (s *Service) primitive(r primitiveRoute) func(*gin.Context) (any, error) {
	known := slices.Concat([]string{"backend", "name"}, r.parameters, []string{"visitor"})
	if r.has == nil {
		known[0] = "strategy"
	}
	return func(c *gin.Context) (any, error) {
		call := &primitiveCall{params: newParams(c.Request, known), service: s, gin: c, path: c.FullPath()}
		if r.has != nil {
			call.Primitives = s.backendWith(call.params, r.has)
		}
		if call.err != nil {
			return nil, call.err
		}
		call.request = locks.Request{Key: call.word("name", defaultName), Owner: s.newOwner()}
		if call.values.Has("visitor") {
			call.visitor = call.word("visitor", "")
		}
		run := r.read(call)
		if call.err != nil {
			return nil, call.err
		}
		call.began = time.Now()
		if !releases(call.path) {
			call.trace(call.context(), api.Asked)
		}
		answer, err := run()
		if err != nil {
			return nil, call.failure(err)
		}
		return answer, nil
	}
}

// backendWith returns the request's backend or, if none is named, the first with the primitive.
func (s *Service) backendWith(p *params, has func(locks.Primitives) bool) locks.Primitives {
	having := slices.DeleteFunc(slices.Clone(s.Primitives), func(b locks.Primitives) bool { return !has(b) })
	if len(having) > 0 && !p.values.Has("backend") {
		return having[0]
	}
	id := p.text("backend", "")
	var names []string
	for _, b := range having {
		if b.Backend == id {
			return b
		}
		names = append(names, b.Backend)
	}
	p.fail("backend", id, api.Textf("one that has this: %s", "有这个原语的后端之一：%s", strings.Join(names, ", ")))
	return locks.Primitives{}
}

func (c *primitiveCall) readWait() { c.request.Wait = c.duration("wait", primitiveWait, 0) }

func (c *primitiveCall) readLease() {
	if c.values.Has("lease") && c.Backend != leasing {
		c.fail("lease", c.text("lease", ""), api.Textf("left out: %s has no lease per request; it is supported by %s",
			"不写：%s 不支持按请求设置租期；支持的是 %s", c.Backend, leasing))
	}
	c.request.Lease = c.lease()
}

// trace reports a step. In place of a strategy it names the route, such as /test/read. It may be called after
// the request.
func (c *primitiveCall) trace(ctx context.Context, step api.Step) {
	locks.Trace(c.service.traced(ctx, c.path), step, c.request.Key, cmp.Or(c.visitor, c.request.Owner), 0)
}

func (c *primitiveCall) context() context.Context { return c.gin.Request.Context() }

func (c *primitiveCall) waited() time.Duration {
	if c.granted.IsZero() {
		return time.Since(c.began)
	}
	return c.granted.Sub(c.began)
}

// failure counts the outcome in the metrics, and adds the strategy, the key, the backend and the times.
func (c *primitiveCall) failure(err error) error {
	p := describe(err)
	p.Strategy, p.Name, p.WaitedMS = c.card.ID, c.request.Key, ms(c.waited())
	if !c.granted.IsZero() {
		p.HeldMS = ms(time.Since(c.granted))
	}
	p.Backend = cmp.Or(p.Backend, c.Backend)
	c.observe(p.Outcome)
	return p
}

// done counts the outcome in the metrics, and returns the fields that all answers have.
func (c *primitiveCall) done(outcome api.Outcome) primitiveAnswer {
	c.observe(outcome)
	return primitiveAnswer{outcome, c.Backend, c.request.Key, c.service.Replica, ms(c.waited())}
}

func (c *primitiveCall) observe(outcome api.Outcome) {
	primitive := strings.TrimPrefix(c.path, "/test/")
	c.service.metrics.primitives.WithLabelValues(primitive, c.Backend, string(outcome)).Inc()
}
