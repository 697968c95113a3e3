package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"oversell/lab/load"
)

// targets are the wanted ratios of the service to the strategy without HTTP. A p99 (in ms) of 0 means any.
var targets = []struct {
	strategy string
	ratio    float64
	p99      float64
}{
	{"for-update", 0.8, 0},
	{"redis", 0.8, 150},
	{"zk", 0.8, 400},
}

// service compares the service behind nginx with the same strategies without HTTP.
func (b *bench) service(ctx context.Context) error {
	b.printf("## The service\n\n%d clients for %v through nginx, and the same strategy in %d instances without HTTP; "+
		"%d rounds of each, in random order. Medians; in brackets their 95 %% intervals; the ratio is that in the same round.\n\n", b.clients, b.length, replicas, b.rounds)
	b.printf("| strategy | direct /s | service /s | ratio | wanted | direct p99 ms | service p99 ms | wanted |\n" +
		"|---|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, target := range targets {
		measured, err := inTurn(b, []string{"direct", "service"}, func(side string) (figures, error) {
			if side == "direct" {
				return exact(b.withoutHTTP(ctx, target.strategy, nil))
			}
			p := load.Plan{Strategy: target.strategy, Clients: b.clients, Wait: 10 * time.Second}
			return exact(b.forLength(ctx, b.at, p))
		})
		if err != nil {
			return fmt.Errorf("%s: %w", target.strategy, err)
		}
		direct, service := measured["direct"], measured["service"]
		b.printf("| %s | %s | %s | %s | %.2f | %s | %s | %s |\n", target.strategy,
			ranged(direct, rate, 0), ranged(service, rate, 0), times(service, direct, rate), target.ratio,
			ranged(direct, p99, 1), ranged(service, p99, 1), orDash("%.0f", target.p99))
	}
	b.printf("\n")
	return b.printMemory(ctx, 80)
}

var residentMemory = regexp.MustCompile(`(?m)^process_resident_memory_bytes (\S+)`)

// printMemory prints how much memory each replica uses. The wanted limit is in MB.
func (b *bench) printMemory(ctx context.Context, wanted int) error {
	for i, replica := range b.at.Replicas {
		mb, err := resident(ctx, replica)
		if err != nil {
			return err
		}
		b.printf("Replica %d: %.0f MB resident (wanted: under %d).\n", i+1, mb, wanted)
	}
	b.printf("\n")
	return nil
}

// resident returns how much memory a replica uses, in MB.
func resident(ctx context.Context, replica string) (mb float64, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, replica+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	found := residentMemory.FindSubmatch(text)
	if err != nil || found == nil {
		return 0, fmt.Errorf("%s/metrics has no resident memory: %w", replica, err)
	}
	bytes, err := strconv.ParseFloat(string(found[1]), 64)
	return bytes / 1e6, err
}
