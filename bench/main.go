// Command bench measures the service against its own limit: the same critical
// section over the same servers, written straight on the drivers, with no HTTP
// between. Both sides run in turn, in one run, on one machine; the ratio counts.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"time"
)

// volume is what both sides do: clients x loops deductions.
type volume struct{ clients, loops int }

// result of one side in one round: requests per second, milliseconds.
type result struct {
	perSecond, p99 float64
	lost           int
}

// terms are what every heat of a contest has.
type terms struct {
	clients int // of each process
	length  time.Duration
}

// targets are the least ratio to the straight loop, and the most p99 (0: any).
var targets = []struct {
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
	rounds := flag.Int("rounds", 5, "rounds, in which everything has its turn")
	clients := flag.Int("clients", 100, "clients of the service")
	loops := flag.Int("loops", 50, "requests of each client")
	length := flag.Duration("length", 3*time.Second, "how long a lock alone is measured in each round")
	only := flag.String("only", "", "measure `PART` only: locks, shop, service, waiters, questions or page")
	file := flag.String("o", "RESULTS.md", "write the results to `FILE`, too; empty: don't")
	worker := flag.String("worker", "", "be one process that sells under this lock (the bench starts these itself)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if *worker != "" {
		fail(work(ctx, *worker, os.Stdin, os.Stdout))
		return
	}
	var text bytes.Buffer
	b := bench{
		binary: *binary, rounds: *rounds, only: *only, out: io.MultiWriter(os.Stdout, &text),
		load: volume{*clients, *loops}, terms: terms{clients: max(1, *clients/processes), length: *length},
	}
	fail(b.run(ctx))
	if *file != "" {
		fail(os.WriteFile(*file, text.Bytes(), 0o644))
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type bench struct {
	binary string
	rounds int
	only   string
	load   volume
	terms  terms
	out    io.Writer
}

// run measures on one lab, and writes as it goes.
func (b bench) run(ctx context.Context) error {
	binary, err := filepath.Abs(b.binary)
	if err != nil {
		return err
	}
	began := time.Now()
	l, err := startLab(ctx, binary)
	if err != nil {
		return err
	}
	defer l.close()
	fmt.Fprintf(b.out, "# Measured\n\nBy `make bench`, %s; %s/%s, %d cores, %s; %s. Lab ready after %.1f s.\n\n", time.Now().Format(time.DateOnly),
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), l.versions(ctx), time.Since(began).Seconds())
	parts := []struct {
		name string
		do   func(context.Context, lab) error
	}{
		{"service", b.service}, {"locks", b.locks}, {"shop", b.shop}, {"waiters", b.waiters}, {"questions", b.questions}, {"page", b.page},
	}
	for _, part := range parts {
		if b.only != "" && b.only != part.name {
			continue
		}
		if err := part.do(ctx, l); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

func (b bench) locks(ctx context.Context, l lab) error {
	return compete(ctx, l, b.out, b.rounds, b.terms)
}

func (b bench) questions(ctx context.Context, l lab) error {
	return operations(ctx, l, b.out)
}

// service measures the service through nginx against the straight loops.
func (b bench) service(ctx context.Context, l lab) error {
	fmt.Fprintf(b.out, "## The service\n\n%d clients x %d requests through nginx, and the same loop written straight on the drivers in %d processes without HTTP; %d rounds of each in turn, medians.\n\n",
		b.load.clients, b.load.loops, processes, b.rounds)
	fmt.Fprintf(b.out, "| strategy | straight /s | service /s | ratio | wanted | straight p99 ms | service p99 ms | wanted |\n|---|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, c := range targets {
		var direct, service []result
		for range b.rounds {
			a, err := straight(ctx, l, c.strategy, b.load)
			if err != nil {
				return fmt.Errorf("%s, straight: %w", c.strategy, err)
			}
			s, err := l.run(ctx, c.strategy, b.load)
			if err != nil {
				return fmt.Errorf("%s, service: %w", c.strategy, err)
			}
			if a.lost != 0 || s.lost != 0 {
				return fmt.Errorf("%s lost updates: %d straight, %d in the service; nothing to compare", c.strategy, a.lost, s.lost)
			}
			direct, service = append(direct, a), append(service, s)
		}
		rate := func(r result) float64 { return r.perSecond }
		p99 := func(r result) float64 { return r.p99 }
		straight, served := median(direct, rate), median(service, rate)
		fmt.Fprintf(b.out, "| %s | %.0f | %.0f | %.2f | %.2f | %.1f | %.1f | %s |\n",
			c.strategy, straight, served, served/straight, c.ratio, median(direct, p99), median(service, p99), atMost(c.p99))
	}
	fmt.Fprintln(b.out)
	return l.memory(ctx, b.out, 80)
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
