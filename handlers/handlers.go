// Package handlers serves the strategies and the stock over HTTP, with Gin. It names no strategy.
package handlers

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// Config lists the strategies and the other objects that one replica uses.
type Config struct {
	Replica    string
	Strategies []locks.Strategy // most are locks.Guard of a Locker: see locks/catalog
	// Lockers are the locks of the scenarios (coupons, recharges, …), by the id of their strategy.
	Lockers map[string]locks.Locker
	// ByHand are the locks of /test/lock and /test/unlock, by the id of their strategy.
	ByHand map[string]locks.Locker
	// Primitives are the latches, semaphores, … of each backend, the preferred backend first.
	Primitives []locks.Primitives
	// PrimitiveCards describe the primitives, and PrimitiveSource returns the source files of one.
	PrimitiveCards  []api.Primitive
	PrimitiveSource func(api.Primitive) ([]api.File, error)
	// Source returns the source files of the strategy that the card describes.
	Source func(api.Card) ([]api.File, error)
	Ledger *stock.Ledger
	// Resets serves PUT /stock with database connections that sales cannot use. nil means Ledger.
	Resets *stock.Ledger
	// Exists returns an error if a product cannot be sold. nil means that all products can.
	Exists    func(ctx context.Context, product int64) error
	Coupons   *stock.Coupons
	Recharges *stock.Recharges
	Tickets   *stock.Tickets
	// Backends are the servers that /readyz checks.
	Backends []Backend
	// Advise returns what a person can do about an error of a backend, or "". nil means that nobody knows.
	Advise func(backend string, err error) string
	// Unfit returns an error while the tables of the database do not fit, such as those of another program: sales
	// could be lost in them. nil means that they fit.
	Unfit func() error
	// Lab allows resets and failpoints to requests that send Token.
	Lab   bool
	Token string
	// Metrics has further metrics, which /metrics shows with the service's own metrics.
	Metrics prometheus.Gatherer
	// Traces makes the spans of requests. nil means that requests are not traced.
	Traces trace.TracerProvider
	// Log is called with the text of each panic.
	Log func(format string, args ...any)
}

// Backend is a server, or a group of servers, that strategies need.
type Backend struct {
	Name string
	Ping func(context.Context) error
	// Flushes counts FLUSHALL and FLUSHDB since the server started. It is nil except for Redis.
	Flushes func(context.Context) (int64, error)
}

// Service serves the routes of one replica.
type Service struct {
	Config
	byID       map[string]locks.Strategy
	ids        []string
	cards      []api.Card
	events     *hub
	streams    chan struct{} // has an element for each open stream without the lab's token
	metrics    *metrics
	known      sync.Map // the ids of products that exist
	knownCount atomic.Int64
	failpoints failpoints
	kept       keptLocks
	checks     stockChecks
	drain      drain
	closing    sync.Once
	boot       string // names the process, so that a listener of /events notices a restart
	owners     atomic.Int64
	goods      map[string]locks.Strategy // by the parameter grain
	engine     *gin.Engine
}

// New returns a service for the configuration.
func New(config Config) *Service {
	gin.SetMode(gin.ReleaseMode)
	s := &Service{
		Config: config, byID: map[string]locks.Strategy{}, events: newHub(), metrics: newMetrics(),
		kept:    keptLocks{all: map[keptID]*kept{}, names: map[string]bool{}},
		streams: make(chan struct{}, maxStreams), boot: uuid.NewString()[:8], engine: gin.New(),
	}
	s.Resets = cmp.Or(s.Resets, s.Ledger)
	s.goods = s.goodsStrategies()
	for _, strategy := range config.Strategies {
		card := strategy.Card()
		s.byID[card.ID] = strategy
		s.ids = append(s.ids, card.ID)
		s.cards = append(s.cards, card)
		if card.Locker {
			s.metrics.addLock(card.ID)
		}
	}
	s.engine.HandleMethodNotAllowed = true
	s.engine.RedirectTrailingSlash = false // a header of the request would set the target
	if s.Traces != nil {
		s.engine.Use(s.spans())
	}
	s.engine.Use(boundWrites, s.recovered, s.readBody, s.rejectDraining)
	s.routes()
	s.routePrimitives()
	s.routeFailpoints()
	return s
}

func (s *Service) routes() {
	sales := s.engine.Group("", s.rejectUnfit)
	sales.GET("/check/lock", s.answer(s.checkLock))
	sales.POST("/check/lock", s.answer(s.checkLock))
	s.engine.GET("/strategies", func(c *gin.Context) { c.JSON(http.StatusOK, s.cards) })
	s.engine.GET("/strategies/:id", s.answer(s.getStrategy))
	s.engine.GET("/primitives", func(c *gin.Context) { c.JSON(http.StatusOK, s.PrimitiveCards) })
	s.engine.GET("/primitives/:id", s.answer(s.getPrimitive))
	sales.GET("/stock/:id", s.answer(s.getStock))
	sales.PUT("/stock/:id", s.labOnly, s.answer(s.putStock))
	sales.POST("/goods/:id/orders", s.answer(s.postGoodsOrder))
	sales.GET("/coupons/:id", row(s, s.Coupons.Read))
	sales.PUT("/coupons/:id", s.labOnly, s.answer(s.putCoupon))
	sales.GET("/coupons/:id/orders", s.labOnly, row(s, s.Coupons.Orders))
	sales.POST("/coupons/:id/orders", s.answer(s.postCouponOrder))
	sales.GET("/orders/:id", row(s, s.Recharges.Read))
	sales.PUT("/orders/:id", s.labOnly, s.answer(s.putRecharge))
	sales.POST("/orders/:id/recharge", s.answer(s.postRecharge))
	sales.GET("/shows/:id", row(s, s.show))
	sales.PUT("/shows/:id", s.labOnly, s.answer(s.putShow))
	sales.POST("/shows/:id/tickets", s.answer(s.postTicket))
	s.engine.GET("/events", s.answer(s.streamEvents))
	s.engine.GET("/healthz", func(c *gin.Context) {
		c.Header("X-Replica", s.Replica) // a balancer's client sees which replica answered
		c.String(http.StatusOK, "ok\n")
	})
	s.engine.GET("/readyz", s.ready)
	s.engine.GET("/metrics", s.serveMetrics())
	s.engine.NoRoute(func(c *gin.Context) {
		missing := refuse(http.StatusNotFound, api.BadRequest, "there is no route %s; a sale is GET /check/lock?strategy=redis", "没有路由 %s；下单用 GET /check/lock?strategy=redis", short(c.Request.URL.Path))
		if strings.Contains(c.GetHeader("Accept"), "text/html") { // a person with a browser
			missing.page(c)
			return
		}
		s.problem(c, missing)
	})
	s.engine.NoMethod(func(c *gin.Context) {
		s.problem(c, refuse(http.StatusMethodNotAllowed, api.BadRequest, "this route does not allow the method %s", "这个路由不允许 %s 方法", c.Request.Method))
	})
}

// rejectUnfit rejects requests for the tables while these do not fit.
func (s *Service) rejectUnfit(c *gin.Context) {
	if s.Unfit == nil {
		return
	}
	if err := s.Unfit(); err != nil {
		s.problem(c, &stock.Unavailable{Backend: "mysql", Err: err})
	}
}

// ServeHTTP makes Service an http.Handler.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.engine.ServeHTTP(w, r) }

// Routes lists the routes. The lessons of the course are checked against it.
func (s *Service) Routes() gin.RoutesInfo { return s.engine.Routes() }

// Close ends event streams and paused requests. Otherwise, a shutdown would wait for them. It may be
// called again: http.Server does so if a shutdown takes too long and is repeated.
func (s *Service) Close() {
	s.closing.Do(func() { close(s.events.closed) })
	s.failpoints.clear()
}

// newOwner returns a name for the owner of a lock. The name is unique over replicas and restarts.
func (s *Service) newOwner() string {
	return fmt.Sprintf("%s-%s-%d", s.Replica, s.boot, s.owners.Add(1))
}

// recovered answers a panic with the outcome "unknown": the write may have happened already.
func (s *Service) recovered(c *gin.Context) {
	defer func() {
		if p := recover(); p != nil {
			s.Log("panic serving %s: %v\n%s", c.Request.URL.Path, p, debug.Stack())
			s.problem(c, refuse(http.StatusInternalServerError, api.Unknown,
				"the replica failed while it served this request; the stock may have been taken", "副本处理这个请求时出错，库存可能已经扣减"))
		}
	}()
	c.Next()
}

func (s *Service) getStrategy(c *gin.Context) (answer any, err error) {
	id := c.Param("id")
	strategy, ok := s.byID[id]
	if !ok {
		return nil, refuse(http.StatusNotFound, api.BadRequest, "strategy %s does not exist; the strategies are %s", "没有策略 %s；策略有 %s", short(id), strings.Join(s.ids, ", "))
	}
	card := strategy.Card()
	card.Code, err = s.Source(card)
	return card, err
}

func (s *Service) getPrimitive(c *gin.Context) (answer any, err error) {
	var ids []string
	for _, p := range s.PrimitiveCards {
		if p.ID == c.Param("id") {
			p.Code, err = s.PrimitiveSource(p)
			return p, err
		}
		ids = append(ids, p.ID)
	}
	return nil, refuse(http.StatusNotFound, api.BadRequest, "primitive %s does not exist; the primitives are %s", "没有原语 %s；原语有 %s", short(c.Param("id")), strings.Join(ids, ", "))
}

func (s *Service) ready(c *gin.Context) {
	if s.drain.began.Load() {
		c.JSON(http.StatusServiceUnavailable, gin.H{"ready": false, "replica": s.Replica, "stopping": true})
		return
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), 2*time.Second)
	defer cancel()
	pings := map[string]func(context.Context) error{}
	for _, b := range s.Backends {
		pings[b.Name] = b.Ping
	}
	states, status := map[string]string{}, http.StatusOK
	for name, err := range runAll(ctx, pings) {
		states[name] = "ok"
		if err != nil {
			states[name], status = err.Error(), http.StatusServiceUnavailable
		}
	}
	c.JSON(status, gin.H{"ready": status == http.StatusOK, "replica": s.Replica, "backends": states})
}
