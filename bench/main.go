// Command bench compares this repository's locks with those of other libraries, and the service
// with the same critical section written directly on the drivers. It measures all candidates in
// turn on one machine. Compare only figures of the same run.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"time"
)

// volume is the number of clients, and the number of requests that each client sends.
type volume struct{ clients, loops int }

// targets are the wanted ratios of the service to the direct loop. A p99 (in ms) of 0 means any.
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
	binary := flag.String("binary", "../bin/oversell", "the `PROGRAM` to measure")
	rounds := flag.Int("rounds", 5, "rounds; every candidate runs once in each")
	clients := flag.Int("clients", 100, "clients of the service")
	loops := flag.Int("loops", 50, "requests of each client")
	length := flag.Duration("length", 3*time.Second, "duration of a measurement that has no number of requests")
	only := flag.String("only", "", "measure `PART` only: locks, shop, service, waiters, questions, page or traces")
	file := flag.String("o", "RESULTS.md", "also write the results to `FILE`; empty means no file")
	worker := flag.String("worker", "", "for internal use: be one process that sells under this lock")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if *worker != "" {
		fail(work(ctx, *worker, os.Stdin, os.Stdout))
		return
	}
	var text bytes.Buffer
	b := bench{rounds: *rounds, out: io.MultiWriter(os.Stdout, &text), load: volume{*clients, *loops}, length: *length}
	fail(b.run(ctx, *binary, *only))
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
	lab    lab
	rounds int
	load   volume
	length time.Duration
	out    io.Writer
}

// run starts a lab, makes the measurements, and writes the results.
func (b bench) run(ctx context.Context, binary, only string) error {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return err
	}
	began := time.Now()
	if b.lab, err = startLab(ctx, binary); err != nil {
		return err
	}
	defer b.lab.close()
	b.printf("# Measured\n\nBy `make bench`, %s; %s/%s, %d cores, %s; %s. Lab ready after %.1f s.\n\n", time.Now().Format(time.DateOnly),
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), b.lab.versions(ctx), time.Since(began).Seconds())
	for _, part := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"service", b.service}, {"locks", b.locks}, {"shop", b.withoutLocks}, {"waiters", b.waiters}, {"questions", b.questions}, {"page", b.page}, {"traces", b.traces},
	} {
		if only != "" && only != part.name {
			continue
		}
		if err := part.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

func (b bench) printf(format string, args ...any) { fmt.Fprintf(b.out, format, args...) }

// inTurn measures every candidate once in each round. Other load on the machine then affects all
// candidates. A round takes minutes, so it reports each measurement on standard error.
func inTurn[T comparable](b bench, candidates []T, measure func(T) (figures, error)) (map[T][]figures, error) {
	all := map[T][]figures{}
	for round := range b.rounds {
		for _, c := range candidates {
			f, err := measure(c)
			if err != nil {
				return nil, fmt.Errorf("%v: %w", c, err)
			}
			fmt.Fprintf(os.Stderr, "round %d of %d: %v: %.0f a second, p99 %.1f ms\n", round+1, b.rounds, c, f.perSecond, f.p99)
			all[c] = append(all[c], f)
		}
	}
	return all, nil
}

// service compares the service behind nginx with the direct loops.
func (b bench) service(ctx context.Context) error {
	b.printf("## The service\n\n%d clients x %d requests through nginx, and the same loop directly on the drivers in %d processes without HTTP; %d rounds of each in turn, medians.\n\n",
		b.load.clients, b.load.loops, processes, b.rounds)
	b.printf("| strategy | direct /s | service /s | ratio | wanted | direct p99 ms | service p99 ms | wanted |\n|---|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, target := range targets {
		measured, err := inTurn(b, []string{"direct", "service"}, func(side string) (f figures, err error) {
			if side == "direct" {
				f, err = b.direct(ctx, target.strategy)
			} else {
				f, err = b.lab.run(ctx, target.strategy, b.load)
			}
			if err == nil && f.lost != 0 {
				err = fmt.Errorf("%d lost updates: the rates cannot be compared", f.lost)
			}
			return f, err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", target.strategy, err)
		}
		direct, service := measured["direct"], measured["service"]
		b.printf("| %s | %.0f | %.0f | %.2f | %.2f | %.1f | %.1f | %s |\n", target.strategy, median(direct, rate), median(service, rate),
			median(service, rate)/median(direct, rate), target.ratio, median(direct, p99), median(service, p99), orDash("%.0f", target.p99))
	}
	b.printf("\n")
	return b.lab.memory(ctx, b.out, 80)
}

// orDash formats a target. For 0, which means no target, it returns a dash.
func orDash(format string, target float64) string {
	if target == 0 {
		return "-"
	}
	return fmt.Sprintf(format, target)
}
