package handlers

import (
	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"oversell/api"
	"oversell/stock"
)

type metrics struct {
	registry                      *prometheus.Registry
	requests, retries, primitives *prometheus.CounterVec
	waited, pooled, held          *prometheus.HistogramVec
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
		registry:   prometheus.NewRegistry(),
		requests:   counter("requests", "Deductions by strategy and outcome.", "strategy", "outcome"),
		retries:    counter("retries", "Attempts that failed because another request wrote first.", "strategy"),
		primitives: counter("primitives", "Requests for a primitive by backend and outcome.", "primitive", "backend", "outcome"),
		waited:     seconds("lock_wait", "Time waiting for the lock."),
		pooled:     seconds("pool_wait", "Time waiting for a database connection."),
		held:       seconds("lock_held", "Time in the critical section."),
	}
	m.registry.MustRegister(m.requests, m.retries, m.primitives, m.waited, m.pooled, m.held)
	return m
}

func (m *metrics) observe(strategy string, outcome api.Outcome, r stock.Receipt) {
	m.requests.WithLabelValues(strategy, string(outcome)).Inc()
	m.retries.WithLabelValues(strategy).Add(float64(r.Retries))
	m.waited.WithLabelValues(strategy).Observe(r.Waited.Seconds())
	m.pooled.WithLabelValues(strategy).Observe(r.Pooled.Seconds())
	m.held.WithLabelValues(strategy).Observe(r.Held.Seconds())
}

func (s *Service) serveMetrics() gin.HandlerFunc {
	all := prometheus.Gatherers{s.metrics.registry}
	if s.Metrics != nil {
		all = append(all, s.Metrics)
	}
	return gin.WrapH(promhttp.HandlerFor(all, promhttp.HandlerOpts{}))
}
