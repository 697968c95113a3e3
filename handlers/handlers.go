// Package handlers is the service's face: Gin routes over strategies and the
// ledger. It knows the contract of package locks, and no strategy by name.
package handlers

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// Config is what one replica serves.
type Config struct {
	Replica    string
	Strategies []locks.Strategy
	// Lockers guard what is no stock: coupons, recharges. By the id of their card.
	Lockers map[string]locks.Locker
	// Primitives are served by the first backend that has one, unless a request
	// names another.
	Primitives []locks.Primitives
	// Source gives the code of a card's strategy.
	Source func(api.Card) ([]api.File, error)
	Ledger *stock.Ledger
	// Resets is for PUT /stock: a ledger whose connections no sale can use up. nil: Ledger.
	Resets *stock.Ledger
	// Exists is nil for a product that can be sold, or says why it can't. nil: all can.
	Exists    func(ctx context.Context, product int64) error
	Coupons   *stock.Coupons
	Recharges *stock.Recharges
	Tickets   *stock.Tickets
	// Backends are asked by /readyz.
	Backends []Backend
	// Lab allows what changes the class's data, to whoever sends Token.
	Lab   bool
	Token string
	// Metrics are served beside our own.
	Metrics prometheus.Gatherer
	// Log takes what nobody could be told: a panic.
	Log func(format string, args ...any)
}

// Backend is something the strategies need, and how to see whether it answers.
type Backend struct {
	Name string
	Ping func(context.Context) error
	// Flushes counts the FLUSHALL and FLUSHDB that its servers executed since they were
	// started; nil: it is no Redis.
	Flushes func(context.Context) (int64, error)
}

// Service is the routes of one replica.
type Service struct {
	Config
	byID     map[string]locks.Strategy
	ids      []string
	cards    []api.Card
	events   *hub
	streams  chan struct{} // one for each stream of strangers
	metrics  *metrics
	products products
	// failpoints stop requests where the lab wants it.
	failpoints failpoints
	boot       string
	owners     atomic.Int64
	engine     *gin.Engine
}

// New wires the routes.
func New(config Config) *Service {
	gin.SetMode(gin.ReleaseMode)
	s := &Service{
		Config: config, byID: map[string]locks.Strategy{}, events: newHub(), metrics: newMetrics(),
		streams: make(chan struct{}, maxStreams), products: products{seen: map[int64]bool{}}, boot: uuid.NewString()[:8], engine: gin.New(),
	}
	if s.Resets == nil {
		s.Resets = s.Ledger
	}
	for _, strategy := range config.Strategies {
		card := strategy.Card()
		s.byID[card.ID] = strategy
		s.ids = append(s.ids, card.ID)
		s.cards = append(s.cards, card)
	}
	s.engine.HandleMethodNotAllowed = true
	s.engine.RedirectTrailingSlash = false // to where a header of the request says
	s.engine.Use(boundWrites, s.recovered, s.readBody)
	s.engine.GET("/check/lock", s.checkLock)
	s.engine.POST("/check/lock", s.checkLock)
	s.routePrimitives()
	s.routeFailpoints()
	s.routeCoupons()
	s.routeRecharges()
	s.routeTickets()
	s.routeGoods()
	s.engine.GET("/strategies", func(c *gin.Context) { c.JSON(http.StatusOK, s.cards) })
	s.engine.GET("/strategies/:id", s.getStrategy)
	s.engine.GET("/stock/:id", s.getStock)
	s.engine.PUT("/stock/:id", s.labOnly, s.putStock)
	s.engine.GET("/events", s.streamEvents)
	s.engine.GET("/healthz", func(c *gin.Context) { c.String(http.StatusOK, "ok\n") })
	s.engine.GET("/readyz", s.ready)
	s.engine.GET("/metrics", s.serveMetrics())
	s.engine.NoRoute(func(c *gin.Context) {
		s.problem(c, api.Problem{Status: http.StatusNotFound, Outcome: api.BadRequest, Detail: "no such route: " + short(c.Request.URL.Path)})
	})
	s.engine.NoMethod(func(c *gin.Context) {
		s.problem(c, api.Problem{Status: http.StatusMethodNotAllowed, Outcome: api.BadRequest, Detail: c.Request.Method + " is not allowed here"})
	})
	return s
}

// ServeHTTP makes the service an http.Handler.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.engine.ServeHTTP(w, r) }

// Close ends the streams and pauses, which would otherwise outlive a shutdown.
func (s *Service) Close() {
	s.events.close()
	s.failpoints.clear()
}

// newOwner names a request's task, uniquely over replicas and restarts.
func (s *Service) newOwner() string {
	return fmt.Sprintf("%s-%s-%d", s.Replica, s.boot, s.owners.Add(1))
}

// recovered answers a panic with "unknown": it may have struck after the write.
func (s *Service) recovered(c *gin.Context) {
	defer func() {
		if p := recover(); p != nil {
			s.Log("panic serving %s: %v\n%s", c.Request.URL.Path, p, debug.Stack())
			s.problem(c, api.Problem{Status: http.StatusInternalServerError, Outcome: api.Unknown, Detail: "the replica failed; the stock may have been taken"})
		}
	}()
	c.Next()
}

// getStrategy is one card, with the code that runs.
func (s *Service) getStrategy(c *gin.Context) {
	id := c.Param("id")
	strategy, ok := s.byID[id]
	if !ok {
		s.problem(c, api.Problem{Status: http.StatusNotFound, Outcome: api.BadRequest, Detail: "no strategy " + short(id) + "; there are " + strings.Join(s.ids, ", ")})
		return
	}
	code, err := s.Source(strategy.Card())
	if err != nil {
		s.problem(c, describe(err))
		return
	}
	c.JSON(http.StatusOK, struct {
		api.Card
		Code []api.File `json:"code"`
	}{strategy.Card(), code})
}

// ready says which backends answer. Within two seconds, whatever they do.
func (s *Service) ready(c *gin.Context) {
	ctx, cancel := context.WithTimeout(c.Request.Context(), 2*time.Second)
	defer cancel()
	type answer struct{ name, state string }
	answers := make(chan answer, len(s.Backends))
	for _, b := range s.Backends {
		go func() {
			if err := b.Ping(ctx); err != nil {
				answers <- answer{b.Name, err.Error()}
				return
			}
			answers <- answer{b.Name, "ok"}
		}()
	}
	states, status := map[string]string{}, http.StatusOK
	for range s.Backends {
		a := <-answers
		states[a.name] = a.state
		if a.state != "ok" {
			status = http.StatusServiceUnavailable
		}
	}
	c.JSON(status, gin.H{"ready": status == http.StatusOK, "replica": s.Replica, "backends": states})
}
