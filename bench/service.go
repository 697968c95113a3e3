package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"oversell/lab/load"
)

// targets are the wanted ratios of the service to the strategy without HTTP, and the wanted p99 in ms.
var targets = []struct {
	strategy string
	ratio    float64
	p99      string
}{
	{"for-update", 0.8, "-"},
	{"redis", 0.8, "150"},
	{"zk", 0.8, "400"},
}

// service compares the service behind nginx with the same strategies without HTTP.
func (b *bench) service(ctx context.Context) error {
	b.printf("## The service\n\n%d clients for %v through nginx, and the same strategy in %d instances without HTTP; "+
		"%d rounds of each, in random order. Medians; in brackets their 95 %% intervals; the ratio is that in the same round.\n\n", b.clients, b.length, instances, b.rounds)
	rows := [][]string{{"strategy", "direct /s", "service /s", "ratio", "wanted", "direct p99 ms", "service p99 ms", "wanted"}}
	for _, target := range targets {
		measured, err := inTurn(b, []string{"direct", "service"}, func(side string) (figures, error) {
			if side == "direct" {
				return exact(b.withoutHTTP(ctx, target.strategy, nil))
			}
			return exact(b.forLength(ctx, b.at, load.Plan{Strategy: target.strategy, Clients: b.clients, Wait: 10 * time.Second}))
		})
		if err != nil {
			return fmt.Errorf("%s: %w", target.strategy, err)
		}
		direct, service := measured["direct"], measured["service"]
		rows = append(rows, []string{
			target.strategy, ranged(direct, rate, 0), ranged(service, rate, 0), times(service, direct, rate), fmt.Sprintf("%.2f", target.ratio),
			ranged(direct, p99, 1), ranged(service, p99, 1), target.p99,
		})
	}
	b.rows(rows)
	if err := b.balancers(ctx); err != nil {
		return err
	}
	mb, err := b.memory()
	b.printf("The largest replica has %.0f MB resident (wanted: under 80).\n\n", mb)
	return err
}

// memory returns how much memory the largest replica uses, in MB.
func (b *bench) memory() (most float64, err error) {
	for _, s := range b.rig.Servers() {
		if !strings.HasPrefix(s.Name(), "replica-") {
			continue
		}
		process, err := procfs.NewProc(s.PID())
		if err != nil {
			return 0, err
		}
		stat, err := process.Stat()
		if err != nil {
			return 0, err
		}
		most = max(most, float64(stat.ResidentMemory())/1e6)
	}
	return most, nil
}
