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

// sampled is a setting of the traces of a replica.
type sampled struct {
	name string
	env  []string
}

// traces measures how much traces lower the rate of sales. Each setting has a lab of its own with one
// replica, and the same load without nginx in each round.
func (b *bench) traces(ctx context.Context) error {
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	defer collector.Close()
	endpoint := "OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL
	labs, names := map[string]rig.Addresses{}, []string{}
	for _, s := range []sampled{
		{"off", nil}, {"1 %", []string{endpoint}}, {"all", []string{endpoint, "OTEL_TRACES_SAMPLER=always_on"}},
	} {
		cfg := b.lab()
		cfg.Redis, cfg.Zookeeper, cfg.Etcd, cfg.Nginx = 1, false, false, false
		cfg.Replicas, cfg.ReplicaEnv = 1, append(s.env, "GOMAXPROCS=1")
		lab, err := rig.Start(ctx, cfg)
		if err != nil {
			return fmt.Errorf("traces %s: %w", s.name, err)
		}
		defer func() { _ = lab.Close() }()
		labs[s.name], names = lab.Addresses(), append(names, s.name)
	}
	b.printf("## Traces\n\n%d clients for %v, on one replica without nginx; %d rounds of each, in random order. The ratio is "+
		"that of the rates in the same round. Medians; in brackets their 95 %% intervals.\n\n", b.clients, b.length, b.rounds)
	b.printf("| strategy | traces | sales /s | ratio to off |\n|---|---|---:|---:|\n")
	for _, strategy := range []string{"atomic", "redis"} {
		measured, err := inTurn(b, names, func(name string) (figures, error) {
			p := load.Plan{Strategy: strategy, Clients: b.clients, Wait: 10 * time.Second}
			return exact(b.forLength(ctx, labs[name], p))
		})
		if err != nil {
			return fmt.Errorf("%s: %w", strategy, err)
		}
		for _, name := range names {
			b.printf("| %s | %s | %s | %s |\n", strategy, name, ranged(measured[name], rate, 0), times(measured[name], measured["off"], rate))
		}
	}
	b.printf("\n")
	return nil
}
