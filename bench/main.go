// Command bench measures the service against its own limit: the same critical
// section over the same servers, written straight on the drivers, with no HTTP
// between. Both sides run in turn, in one run, on one machine; the ratio counts.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"time"
)

// load is what both sides do: clients x loops deductions.
type load struct{ clients, loops int }

// result of one side in one round.
type result struct {
	perSecond, p99 float64 // requests per second, milliseconds
	lost           int
}

// targets are the least ratio to the straight loop, and the most p99 (0: any).
var contests = []struct {
	strategy string
	ratio    float64
	p99      float64
	straight func(context.Context, lab, load) (result, error)
}{
	{"for-update", 0.8, 0, forUpdate},
	{"redis", 0.8, 150, redisLock},
	{"zk", 0.8, 400, zkLock},
}

func main() {
	binary := flag.String("binary", "../bin/oversell", "the program to measure")
	rounds := flag.Int("rounds", 5, "rounds of each side, in turn")
	clients := flag.Int("clients", 100, "clients")
	loops := flag.Int("loops", 50, "requests of each client")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := bench(ctx, *binary, *rounds, load{*clients, *loops}); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(ctx context.Context, binary string, rounds int, l load) error {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return err
	}
	began := time.Now()
	lab, err := startLab(ctx, binary)
	if err != nil {
		return err
	}
	defer lab.close()
	fmt.Printf("%s/%s, %d cores, %s; %d clients x %d requests, %d rounds, medians\n",
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), l.clients, l.loops, rounds)
	fmt.Printf("lab ready after %.1f s\n\n", time.Since(began).Seconds())
	fmt.Printf("%-12s %14s %14s %7s %8s %10s %8s\n", "strategy", "straight /s", "service /s", "ratio", "target", "p99 ms", "target")
	for _, c := range contests {
		var straight, service []result
		for range rounds {
			a, err := c.straight(ctx, lab, l)
			if err != nil {
				return fmt.Errorf("%s, straight: %w", c.strategy, err)
			}
			b, err := lab.run(ctx, c.strategy, l)
			if err != nil {
				return fmt.Errorf("%s, service: %w", c.strategy, err)
			}
			if a.lost != 0 || b.lost != 0 {
				return fmt.Errorf("%s lost updates: %d straight, %d in the service; nothing to compare", c.strategy, a.lost, b.lost)
			}
			straight, service = append(straight, a), append(service, b)
		}
		rate := func(r result) float64 { return r.perSecond }
		a, b := median(straight, rate), median(service, rate)
		fmt.Printf("%-12s %14.0f %14.0f %7.2f %8.2f %10.1f %8.0f\n",
			c.strategy, a, b, b/a, c.ratio, median(service, func(r result) float64 { return r.p99 }), c.p99)
	}
	fmt.Println()
	return lab.memory(ctx)
}

func median(rs []result, of func(result) float64) float64 {
	sorted := slices.SortedFunc(slices.Values(rs), func(a, b result) int { return cmp.Compare(of(a), of(b)) })
	return of(sorted[len(sorted)/2])
}

// readJSON reads what the program wrote.
func readJSON(file string, into any) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}
