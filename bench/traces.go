package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// sampled is a setting of the traces of a replica.
type sampled struct {
	name string
	env  []string
}

// traces measures how much traces lower the rate of sales. Each setting has a replica of its own, with
// the servers of the lab, and the same load without nginx in each round.
func (b bench) traces(ctx context.Context) error {
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer collector.Close()
	endpoint := "OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL
	replicas, names := map[string]lab{}, []string{}
	for _, s := range []sampled{{"off", nil}, {"1 %", []string{endpoint}}, {"all", []string{endpoint, "OTEL_TRACES_SAMPLER=always_on"}}} {
		replica, stop, err := b.lab.replica(ctx, s.env)
		if err != nil {
			return fmt.Errorf("traces %s: %w", s.name, err)
		}
		defer stop()
		replicas[s.name], names = replica, append(names, s.name)
	}
	b.printf("## Traces\n\n%d clients x %d requests to one replica without nginx; %d rounds of each in turn. The ratio is that of the rates in the same round. Medians; in brackets the range.\n\n", b.load.clients, b.load.loops, b.rounds)
	b.printf("| strategy | traces | sales /s | ratio to off |\n|---|---|---:|---:|\n")
	for _, strategy := range []string{"atomic", "redis"} {
		measured, err := inTurn(b, names, func(name string) (figures, error) { return replicas[name].run(ctx, strategy, b.load) })
		if err != nil {
			return fmt.Errorf("%s: %w", strategy, err)
		}
		for _, name := range names {
			ratios := make([]float64, b.rounds)
			for round := range ratios {
				ratios[round] = measured[name][round].perSecond / measured["off"][round].perSecond
			}
			slices.Sort(ratios)
			b.printf("| %s | %s | %s | %.2f (%.2f–%.2f) |\n", strategy, name, ranged(measured[name], rate, 0), ratios[len(ratios)/2], ratios[0], ratios[len(ratios)-1])
		}
	}
	b.printf("\n")
	return nil
}

// replica starts one more replica with the servers of the lab, and returns the lab with this replica as
// its target. stop ends the replica.
func (l lab) replica(ctx context.Context, env []string) (with lab, stop func(), err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return l, nil, err
	}
	address := listener.Addr().String()
	_ = listener.Close() // another program could take the port: then the replica ends
	serve := exec.CommandContext(ctx, l.binary, "serve", "--lab", "--addr", address)
	serve.Env = slices.Concat(os.Environ(), []string{
		"LAB_TOKEN=" + l.Token, "MYSQL_DSN=" + l.MySQL, "REDIS_URL=" + l.Redis[0], "REDLOCK_URLS=" + strings.Join(l.Redis, ","),
		"ZK_SERVERS=" + strings.Join(l.ZooKeeper, ","), "ETCD_ENDPOINTS=" + strings.Join(l.Etcd, ","), "GOMAXPROCS=1",
	}, env)
	if err := serve.Start(); err != nil {
		return l, nil, err
	}
	stop = func() {
		_ = serve.Process.Signal(syscall.SIGTERM)
		_ = serve.Wait()
	}
	l.Target = "http://" + address
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.Target+"/readyz", nil)
		if err != nil {
			break
		}
		if answer, err := http.DefaultClient.Do(request); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return l, stop, nil
			}
		}
	}
	stop()
	return l, nil, errors.New("the replica was not ready within a minute")
}
