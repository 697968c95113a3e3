package cli

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"math/big"

	"oversell/lab/report"
	"oversell/lab/rig"
)

// openLab completes the plan with a place to load, and returns what closes it again.
func (f *runFlags) openLab(ctx context.Context, errOut io.Writer) (func() error, error) {
	f.plan.Machine, f.plan.Versions = report.ThisMachine(ctx), report.Versions(version)
	if f.plan.Seed == 0 {
		f.plan.Seed = drawSeed()
	}
	f.plan.Token = f.token
	if f.plan.Target != "" {
		if f.plan.Token == "" {
			f.plan.Token = classToken
		}
		return func() error { return nil }, nil
	}
	flags := labFlags{replicas: f.replicas, port: 1, token: f.token}
	cfg, err := flags.config(errOut)
	if err != nil {
		return nil, err
	}
	cfg.Ports = rig.Ports{} // any free ones: nobody needs to find this lab
	if f.quiet {
		cfg.Log = nil
	} else {
		_, _ = fmt.Fprintln(errOut, "starting a lab")
	}
	started, err := rig.Start(ctx, cfg)
	if err != nil {
		return nil, err
	}
	addrs := started.Addresses()
	f.plan.Target, f.plan.Token = addrs.Target, cfg.Token
	serverVersions(ctx, addrs, f.plan.Versions)
	return started.Close, nil
}

// drawSeed draws a small positive number, which is easily typed again.
func drawSeed() int64 {
	n, err := rand.Int(rand.Reader, big.NewInt(1_000_000))
	if err != nil {
		return 1
	}
	return n.Int64() + 1
}
