package handlers

import (
	"errors"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// metrics are the service's own metrics. Their labels have few values: strategies, primitives,
// backends and outcomes, which are all fixed lists.
type metrics struct {
	registry                                                      *prometheus.Registry
	requests, retries, primitives, acquisitions, renewals, losses *prometheus.CounterVec
	waited, pooled, held                                          *prometheus.HistogramVec
}

func newMetrics() *metrics {
	seconds := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "oversell_" + name + "_seconds", Help: help, Buckets: prometheus.ExponentialBuckets(0.0001, 2.5, 14),
		}, []string{"strategy"})
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "oversell_" + name + "_total", Help: help}, labels)
	}
	m := &metrics{
		registry:     prometheus.NewRegistry(),
		requests:     counter("requests", "Deductions by strategy and outcome.", "strategy", "outcome"),
		retries:      counter("retries", "Attempts that failed because another request wrote first, or had the lock.", "strategy"),
		primitives:   counter("primitives", "Requests for a primitive by backend and outcome.", "primitive", "backend", "outcome"),
		acquisitions: counter("lock_acquisitions", "Attempts to acquire a lock, by outcome: granted, or why not.", "strategy", "outcome"),
		renewals:     counter("lock_renewals", "Renewals of a lease: renewed, not_held (the lock was gone), or unanswered.", "strategy", "outcome"),
		losses:       counter("lock_losses", "Locks lost before their release, found while held or at the release.", "strategy", "found"),
		waited:       seconds("lock_wait", "Time waiting for the lock."),
		pooled:       seconds("pool_wait", "Time waiting for a database connection."),
		held:         seconds("lock_held", "Time in the critical section."),
	}
	m.registry.MustRegister(m.requests, m.retries, m.primitives, m.acquisitions, m.renewals, m.losses, m.waited, m.pooled, m.held)
	return m
}

// addLock adds the counters of a strategy, so that they are 0, and not absent, before the first event.
func (m *metrics) addLock(strategy string) {
	m.acquisitions.WithLabelValues(strategy, granted)
	for _, outcome := range []string{renewed, unanswered, string(api.NotHeld)} {
		m.renewals.WithLabelValues(strategy, outcome)
	}
	for _, found := range []string{string(api.Held), atRelease} {
		m.losses.WithLabelValues(strategy, found)
	}
}

// count counts a renewal or a loss of a lock of the strategy.
func (m *metrics) count(strategy string, what stock.LockEvent, err error) {
	switch {
	case what == stock.LockRenewed && err == nil:
		m.renewals.WithLabelValues(strategy, renewed).Inc()
	case what == stock.LockRenewed && errors.Is(err, locks.ErrNotHeld):
		m.renewals.WithLabelValues(strategy, string(api.NotHeld)).Inc()
	case what == stock.LockRenewed:
		m.renewals.WithLabelValues(strategy, unanswered).Inc()
	case what == stock.LockLost && errors.Is(err, locks.ErrLost):
		m.losses.WithLabelValues(strategy, string(api.Held)).Inc()
	case what == stock.LockLost:
		m.losses.WithLabelValues(strategy, atRelease).Inc()
	}
}

// These are values of labels that are no outcome of a request.
const granted, renewed, unanswered, atRelease = "granted", "renewed", "unanswered", "at_release"

// observe counts a sale. The strategy ran only if the product exists.
func (m *metrics) observe(card api.Card, outcome api.Outcome, r stock.Receipt) {
	m.requests.WithLabelValues(card.ID, string(outcome)).Inc()
	m.retries.WithLabelValues(card.ID).Add(float64(r.Retries))
	m.waited.WithLabelValues(card.ID).Observe(r.Waited.Seconds())
	m.pooled.WithLabelValues(card.ID).Observe(r.Pooled.Seconds())
	if r.Held > 0 {
		m.held.WithLabelValues(card.ID).Observe(r.Held.Seconds())
	}
	switch {
	case !card.Locker:
	case r.Held > 0:
		m.acquisitions.WithLabelValues(card.ID, granted).Inc()
	default:
		m.acquisitions.WithLabelValues(card.ID, string(outcome)).Inc()
	}
}

// acquired counts an acquisition of the lock of a strategy by a request that is not a plain sale.
func (m *metrics) acquired(strategy string, err error) {
	outcome := granted
	if err != nil {
		outcome = string(describe(err).Outcome)
	}
	m.acquisitions.WithLabelValues(strategy, outcome).Inc()
}

func (s *Service) serveMetrics() gin.HandlerFunc {
	all := prometheus.Gatherers{s.metrics.registry}
	if s.Metrics != nil {
		all = append(all, s.Metrics)
	}
	return gin.WrapH(promhttp.HandlerFor(all, promhttp.HandlerOpts{}))
}
