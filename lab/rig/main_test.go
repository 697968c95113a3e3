package rig_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

// TestMain lets the test binary also run as one of three other programs: a reaper, a replica with a
// few routes, and a host. A host is a program with a rig of its own, for tests that kill such a
// program.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == "serve":
		serve()
	case len(os.Args) > 1 && os.Args[1] == "host":
		host()
	default:
		rigtest.Main(m)
	}
}

// hosted is printed by host when its rig serves: the rig's folder, addresses and process ids.
type hosted struct {
	Dir   string
	Addrs []string
	PIDs  []int
}

// host runs a rig and closes it at SIGINT. The rig is the whole lab, or a lab with faults if the program has
// the argument experiments.
func host() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT)
	defer stop()
	cfg, harming := everything(), func(*rig.Rig) error { return nil }
	if os.Args[2] == "experiments" {
		cfg, harming = experiments(), harm
	}
	r, err := rig.Start(ctx, cfg)
	if err == nil {
		err = harming(r)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	report := hosted{Dir: r.Dir()}
	for _, s := range r.Servers() {
		report.Addrs = append(report.Addrs, s.Addr())
		report.PIDs = append(report.PIDs, s.PID())
	}
	_ = json.NewEncoder(os.Stdout).Encode(report)
	<-ctx.Done()
	if err := r.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// everything returns the configuration of the whole lab, with replicas of this test binary, and
// with two Redis servers instead of five.
func everything() rig.Config {
	program, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cfg := rig.FullLab(program, "t0ken")
	cfg.Redis = 2
	return cfg
}
