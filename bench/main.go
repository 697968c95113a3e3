// Command bench compares this repository's locks with those of other libraries, and the service
// with the same strategies without HTTP. It measures all candidates once in each round, in random
// order, on one machine. Compare only figures of the same run.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"oversell/lab/backend"
	"oversell/lab/ratio"
	"oversell/lab/rig"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "reap" { // the process that ends leftover servers; see package rig
		fail(rig.Reap(os.Args[2], os.Stdin, os.Stdout))
		return
	}
	var b bench
	flag.StringVar(&b.binary, "binary", "../bin/oversell", "the `PROGRAM` to measure")
	flag.IntVar(&b.rounds, "rounds", 10, "rounds; every candidate runs once in each; at least 6")
	flag.IntVar(&b.clients, "clients", 100, "number of clients that buy at the same time")
	flag.DurationVar(&b.length, "length", 2*time.Second, "duration of a measurement")
	only := flag.String("only", "",
		"measure only these `PARTS`, separated by commas: service, locks, least, shop, questions, traces, processors; or durability, waiters, which are not measured without it")
	file := flag.String("o", "RESULTS.md", "also write the results to `FILE`, and each measurement to a .csv of that name; empty means no file")
	flag.Parse()
	if b.rounds < ratio.Fewest {
		fail(fmt.Errorf("-rounds %d: must be %d or more: fewer values have no 95 %% interval", b.rounds, ratio.Fewest))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var text bytes.Buffer
	b.out = io.MultiWriter(os.Stdout, &text)
	fail(b.run(ctx, *only))
	if *file != "" {
		fail(errors.Join(os.WriteFile(*file, text.Bytes(), 0o644),
			os.WriteFile(strings.TrimSuffix(*file, ".md")+".csv", b.samples.Bytes(), 0o644)))
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type bench struct {
	binary  string // the path of oversell, for the replicas
	rig     *rig.Rig
	at      rig.Addresses
	rounds  int
	clients int
	length  time.Duration
	out     io.Writer
	samples bytes.Buffer // each measurement
	part    string       // the name of the part that runs
}

// part is a section of the results.
type part struct {
	name    string
	measure func(context.Context) error
	apart   bool // it has a document of its own, so it is measured only by its name
}

// chosen returns the parts with the names in only, or all parts of RESULTS.md.
func (b *bench) chosen(only string) (parts []part, err error) {
	names := strings.Split(only, ",")
	for _, p := range []part{
		{"service", b.service, false},
		{"locks", b.locks, false},
		{"least", b.least, false},
		{"shop", b.withoutLocks, false},
		{"questions", b.questions, false},
		{"traces", b.traces, false},
		{"processors", b.processors, false},
		{"durability", b.durability, true},
		{"waiters", b.waiters, true},
	} {
		if slices.Contains(names, p.name) || only == "" && !p.apart {
			parts = append(parts, p)
		}
	}
	if only != "" && len(parts) != len(names) {
		err = fmt.Errorf("-only %q: it has a name of no part", only)
	}
	return parts, err
}

// run starts a lab, makes the measurements, and writes the results.
func (b *bench) run(ctx context.Context, only string) (err error) {
	parts, err := b.chosen(only)
	if err != nil {
		return err
	}
	if b.binary, err = filepath.Abs(b.binary); err != nil {
		return err
	}
	began := time.Now()
	lab, err := rig.Start(ctx, rig.OwnLab(b.binary, os.Stderr))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lab.Close()) }()
	b.rig, b.at = lab, lab.Addresses()
	versions := map[string]string{}
	backend.Versions(ctx, versions, b.at.MySQL, b.at.Redis, b.at.Zookeeper, b.at.Etcd)
	b.printf("# Measured\n\nBy `make %s`, %s; %s/%s, %d cores, %s; %s, Redis %s. Lab ready after %.1f s.\n\n",
		cmp.Or(only, "bench"), time.Now().Format(time.DateOnly), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(),
		versions["mysql"], versions["redis"], time.Since(began).Seconds())
	b.samples.WriteString("part,candidate,round,rate_per_s,p50_ms,p99_ms,requests_per_grant,failed,load_share,memory_mb\n")
	for _, p := range parts {
		b.part = p.name
		if err := p.measure(ctx); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// deployment is a lab with a change of its configuration.
type deployment struct {
	name   string
	change func(*rig.Config)
}

// deploy starts a lab for each deployment. end ends those that were started, also after an error.
func (b *bench) deploy(ctx context.Context, all []deployment) (labs map[string]rig.Addresses, names []string, end func(), err error) {
	var started []*rig.Rig
	end = func() {
		for _, lab := range started {
			_ = lab.Close()
		}
	}
	labs = map[string]rig.Addresses{}
	for _, d := range all {
		cfg := rig.OwnLab(b.binary, os.Stderr)
		d.change(&cfg)
		lab, err := rig.Start(ctx, cfg)
		if err != nil {
			return nil, nil, end, fmt.Errorf("%s: %w", d.name, err)
		}
		started, labs[d.name], names = append(started, lab), lab.Addresses(), append(names, d.name)
	}
	return labs, names, end, nil
}

func (b *bench) printf(format string, args ...any) { fmt.Fprintf(b.out, format, args...) }

// inTurn measures every candidate once in each round, in random order. Other load on the machine then affects all
// candidates. A round takes minutes, so it reports each measurement on standard error.
func inTurn[T comparable](b *bench, candidates []T, once func(T) (figures, error)) (map[T][]figures, error) {
	all := map[T][]figures{}
	for round := range b.rounds {
		for _, i := range rand.Perm(len(candidates)) {
			c := candidates[i]
			f, err := once(c)
			if err != nil {
				return nil, fmt.Errorf("%v: %w", c, err)
			}
			fmt.Fprintf(os.Stderr, "round %d of %d: %v: %.0f a second, p99 %.1f ms\n",
				round+1, b.rounds, c, rate(f), f.P99MS)
			all[c] = append(all[c], f)
			fmt.Fprintf(&b.samples, "%s,%q,%d,%.1f,%.3f,%.3f,%.2f,%d,%.3f,%.1f\n", b.part, fmt.Sprint(c), round+1,
				rate(f), f.P50MS, f.P99MS, f.each, f.Errors, f.Load, f.memory)
		}
	}
	return all, nil
}
