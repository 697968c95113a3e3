package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"oversell/lab/rig"
	"oversell/migrations"
	"oversell/stock"
	"oversell/trial/lockstest"
)

// These are the times of the contract. A check may take checkLimit. In it, a lease of contractLease
// must expire, and one of longLease must not.
const (
	checkLimit    = 2 * time.Minute // a check of renewals takes half a minute, and may be repeated
	contractLease = 2 * time.Second
	longLease     = 40 * time.Second
)

// Contract has the outcomes of the checks.
type Contract []lockstest.CheckResult

// Failed returns the number of checks that failed, and whether a basic one failed or was inconclusive.
func (c Contract) Failed() (n int, basic bool) {
	for _, o := range c {
		if o.Failed != "" {
			n++
		}
		basic = basic || o.Basic && o.Failed+o.Inconclusive != ""
	}
	return n, basic
}

// Open returns the number of checks that were inconclusive.
func (c Contract) Open() int {
	return len(slices.DeleteFunc(slices.Clone(c), func(o lockstest.CheckResult) bool { return o.Inconclusive == "" }))
}

// String counts the checks that failed, and those that were inconclusive.
func (c Contract) String() string {
	failed, _ := c.Failed()
	text := fmt.Sprintf("%d of %d checks of the contract failed.", failed, len(c))
	if open := c.Open(); open > 0 {
		text += fmt.Sprintf(" Inconclusive: %d.", open)
	}
	return text
}

// CheckContract runs the wanted checks, or all for nil, on the servers of a lab, and calls report after each. The locks
// are in worker processes, each with a program of its own. A worker is the command worker of this
// program.
func (l Lock) CheckContract(
	ctx context.Context, at rig.Addresses, wanted func(check string) bool, report func(lockstest.CheckResult),
) (outcomes Contract, err error) {
	db, err := stock.Open(at.MySQL, 8)
	if err != nil {
		return nil, err
	}
	pool, err := db.DB()
	if err != nil {
		return nil, err
	}
	defer func() { _ = pool.Close() }()
	if err := migrations.Up(ctx, pool); err != nil {
		return nil, err
	}
	program := l.Program
	if program == "" {
		if program, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	workers := &lockstest.Workers{Lease: longLease, Command: func(lease time.Duration) *exec.Cmd {
		cmd := exec.Command(program, "worker") //nolint:noctx // this very program; Workers ends it
		cmd.Env = append(Environment(), at.ServeEnv()...)
		cmd.Env = append(cmd.Env, "ADAPTER="+l.line, "LEASE="+lease.String(), "ZK_SESSION="+lease.String())
		return cmd
	}}
	defer func() { err = errors.Join(err, workers.Close()) }()
	cfg := &lockstest.Config{
		Card: l.Hello.Card(), Workers: workers, Lease: contractLease,
		Timeout: 8*time.Second + time.Duration(l.Hello.Capabilities.Poll)*time.Millisecond,
		NewProduct: func(ctx context.Context, count int) (int64, error) {
			item := stock.Item{ProductCode: "contract", StockCode: "001", Count: count}
			err := db.WithContext(ctx).Create(&item).Error
			return item.ID, err
		},
		Count: func(ctx context.Context, product int64) (int, error) {
			item, err := stock.NewLedger(db).Read(ctx, product)
			return item.Count, err
		},
	}
	skip := func(c lockstest.Check) bool {
		if wanted != nil {
			return !wanted(c.Name)
		}
		return c.Name == "amnesia" && !l.Hello.Capabilities.AdvanceFence
	}
	err = lockstest.Contract(ctx, cfg, checkLimit, skip, func(o lockstest.CheckResult) {
		outcomes = append(outcomes, o)
		report(o)
	})
	return outcomes, err
}
