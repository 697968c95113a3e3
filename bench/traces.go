package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"oversell/lab/load"
	"oversell/lab/rig"
)

// traces measures how much traces lower the rate of sales, on one replica without nginx.
func (b *bench) traces(ctx context.Context) error {
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	defer collector.Close()
	traced := func(env ...string) func(*rig.Config) {
		return func(cfg *rig.Config) {
			cfg.Redis, cfg.Zookeeper, cfg.Etcd, cfg.Nginx = 1, 0, 0, false
			cfg.Replicas, cfg.ReplicaEnv = 1, append(env, "GOMAXPROCS=1")
		}
	}
	endpoint := "OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL
	labs, names, end, err := b.deploy(ctx, []deployment{
		{"off", traced()}, {"1 %", traced(endpoint)}, {"all", traced(endpoint, "OTEL_TRACES_SAMPLER=always_on")},
	})
	defer end()
	if err != nil {
		return err
	}
	b.printf("## Traces\n\n%d clients for %v, on one replica without nginx; %d rounds of each, in random order. The ratio is "+
		"that of the rates in the same round. Medians; in brackets their 95 %% intervals.\n\n", b.clients, b.length, b.rounds)
	rows := [][]string{{"strategy, traces", "sales /s", "ratio to off"}}
	for _, strategy := range []string{"atomic", "redis"} {
		measured, err := inTurn(b, names, func(name string) (figures, error) {
			p := load.Plan{Strategy: strategy, Clients: b.clients, Wait: 10 * time.Second}
			return exact(b.forLength(ctx, labs[name], p))
		})
		if err != nil {
			return fmt.Errorf("%s: %w", strategy, err)
		}
		for _, name := range names {
			rows = append(rows, []string{strategy + ", " + name, ranged(measured[name], rate, 0), times(measured[name], measured["off"], rate)})
		}
	}
	b.rows(rows)
	return nil
}
