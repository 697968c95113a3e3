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

// result of one side in one round: requests per second, milliseconds.
type result struct {
	perSecond, p99 float64
	lost           int
}

// targets are the least ratio to the straight loop, and the most p99 (0: any).
var contests = []struct {
	strategy string
	ratio    float64
	p99      float64
}{
	{"for-update", 0.8, 0},
	{"redis", 0.8, 150},
	{"zk", 0.8, 400},
}

func main() {
	binary := flag.String("binary", "../bin/oversell", "the program to measure")
	rounds := flag.Int("rounds", 5, "rounds of each side, in turn")
	clients := flag.Int("clients", 100, "clients")
	loops := flag.Int("loops", 50, "requests of each client")
	worker := flag.String("worker", "", "be one process of the straight loop of this strategy (the bench starts these itself)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if *worker != "" {
		if err := work(ctx, *worker, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
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
	fmt.Printf("%-12s %12s %12s %6s %7s %18s %16s %7s\n", "strategy", "straight /s", "service /s", "ratio", "target", "straight p99 ms", "service p99 ms", "target")
	for _, c := range contests {
		var direct, service []result
		for range rounds {
			a, err := straight(ctx, lab, c.strategy, l)
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
			direct, service = append(direct, a), append(service, b)
		}
		rate := func(r result) float64 { return r.perSecond }
		p99 := func(r result) float64 { return r.p99 }
		a, b := median(direct, rate), median(service, rate)
		fmt.Printf("%-12s %12.0f %12.0f %6.2f %7.2f %18.1f %16.1f %7s\n",
			c.strategy, a, b, b/a, c.ratio, median(direct, p99), median(service, p99), atMost(c.p99))
	}
	// Before a thousand clients come: what they make a replica take, it keeps.
	fmt.Println()
	if err := lab.memory(ctx); err != nil {
		return err
	}
	return operations(ctx, lab)
}

// atMost is a target that may be absent.
func atMost(limit float64) string {
	if limit == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f", limit)
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
