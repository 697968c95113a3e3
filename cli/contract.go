package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"oversell/lab/rig"
	"oversell/lab/terminal"
	"oversell/locks"
	"oversell/locks/adapter"
	"oversell/locks/lockstest"
	"oversell/migrations"
	"oversell/stock"
)

// These are the times of the contract. A check may take checkLimit. In it, a lease of contractLease
// must expire, and one of longLease must not.
const (
	checkLimit    = 30 * time.Second
	contractLease = 2 * time.Second
	longLease     = 40 * time.Second
)

func contractCommand() *cobra.Command {
	var quiet bool
	cmd := &cobra.Command{
		Use:   "contract [flags] -- COMMAND...",
		Short: "Check that a lock of your own does what it claims, without faults",
		Long: `Starts the servers of a lab, and runs the command several times as an adapter: a program in any
language that offers a lock on its standard input and output (see docs/adapter.md). It checks
every capability that the adapter claims: exclusion, time-out, cancellation, release, expiry,
renewal, re-entry, notice of a loss, fencing tokens, order of arrival. It does not run the
checks that need a lock if the lock fails a basic one. "oversell judge" also injects faults.

Exit status:
  0    the lock does what it claims
  1    the lock contradicts a claim
  2    the command does not follow the protocol, or the command line is wrong
  130  stopped by Ctrl-C`,
		Example: `  oversell contract -- python3 adapters/examples/lock.py`,
		Args:    afterDash,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			line, hello, err := greet(ctx, args)
			if err != nil {
				return ended(ctx, usage("contract: %w", err))
			}
			out, errOut := cmd.OutOrStdout(), cmd.ErrOrStderr()
			lab, err := startLab(ctx, quiet, errOut, func(cfg *rig.Config) {
				cfg.Replicas, cfg.Nginx, cfg.Postgres = 0, false, slices.Contains(hello.Backends, "postgres")
			})
			if err != nil {
				return ended(ctx, fmt.Errorf("contract: %w", err))
			}
			outcomes, err := contract(ctx, lab.Addresses(), line, hello, anyCheck, contractPrinter(out))
			if err := errors.Join(err, lab.Close()); err != nil {
				return ended(ctx, fmt.Errorf("contract: %w", err))
			}
			return contractVerdict(out, outcomes)
		},
	}
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print only the result, no progress")
	return cmd
}

// greet starts the command without any server, for its hello only. An error of its command line or
// of its hello is found before a lab starts.
func greet(ctx context.Context, args []string) (line string, hello adapter.Hello, err error) {
	if line, err = adapterLine(args); err != nil {
		return "", hello, err
	}
	lock, err := adapter.Start(ctx, func() *exec.Cmd {
		cmd := adapter.Shell(line, "", nil)()
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that its children end with it
		return cmd
	}, nil)
	if err != nil {
		return "", hello, err
	}
	defer lock.Close()
	return line, lock.Hello(), nil
}

// anyCheck selects all checks of the contract.
func anyCheck(string) bool { return true }

// contract runs the wanted checks of the contract on an adapter. Its locks are in worker processes,
// each with a program of its own.
func contract(ctx context.Context, at rig.Addresses, line string, hello adapter.Hello, wanted func(check string) bool, report func(lockstest.Outcome)) (outcomes []lockstest.Outcome, err error) {
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
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	workers := &lockstest.Workers{Lease: longLease, Command: func(lease time.Duration) *exec.Cmd {
		cmd := exec.Command(program, "worker") //nolint:noctx // this very program; Workers ends it
		cmd.Env = append(append(os.Environ(), at.ServeEnv()...), "ADAPTER="+line, "LEASE="+lease.String(), "ZK_SESSION="+lease.String())
		return cmd
	}}
	defer func() { err = errors.Join(err, workers.Close()) }()
	cfg := &lockstest.Config{
		Card: hello.Card(), Workers: workers, Lease: contractLease, Timeout: 8 * time.Second,
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
		return !wanted(c.Name) || c.Name == "amnesia" && !hello.Capabilities.AdvanceFence
	}
	err = lockstest.Contract(ctx, cfg, checkLimit, skip, func(o lockstest.Outcome) {
		outcomes = append(outcomes, o)
		report(o)
	})
	return outcomes, err
}

// checkWidth is the width of the checks' names.
const checkWidth = len("exclusion-across")

// contractPrinter prints a line for each check.
func contractPrinter(out io.Writer) func(lockstest.Outcome) {
	screen := terminal.Of(out)
	return func(o lockstest.Outcome) {
		sign, text := "✓", o.Claimed
		if o.Failed != "" {
			sign, text = "✗", fmt.Sprintf("the lock claims: %s. The check found: %s", o.Claimed, o.Failed)
		}
		line := fmt.Sprintf("%s %-*s  %s", sign, checkWidth, o.Check, text)
		_, _ = fmt.Fprintln(out, screen.Paint(sign, screen.Wrap(line, checkWidth+4)))
	}
}

// failedChecks returns the number of checks that failed, and whether one of them is basic.
func failedChecks(outcomes []lockstest.Outcome) (n int, basic bool) {
	for _, o := range outcomes {
		if o.Failed != "" {
			n, basic = n+1, basic || o.Basic
		}
	}
	return n, basic
}

func contractVerdict(out io.Writer, outcomes []lockstest.Outcome) error {
	failed, basic := failedChecks(outcomes)
	text := fmt.Sprintf("\nContract: %d of %d checks failed.", failed, len(outcomes))
	if basic {
		text += " The other checks need a lock that passes this one, and were not run."
	}
	_, _ = fmt.Fprintln(out, terminal.Of(out).Wrap(text, 0))
	if failed > 0 {
		return &exit{1, nil}
	}
	return nil
}

// workerCommand is a process of the contract. Its environment names the adapter and the servers.
func workerCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "worker",
		Short:  "Run an adapter for a process that checks its contract",
		Hidden: true,
		Args:   noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var s settings
			if err := s.readEnvironment(); err != nil {
				return usage("worker: environment: %w", err)
			}
			return work(cmd.Context(), s, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

func work(ctx context.Context, s settings, in io.Reader, out io.Writer) error {
	dsn, err := s.mysqlDSN(s.MySQL)
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	db, err := stock.Open(dsn, s.Conns)
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	lock, err := startAdapter(ctx, s)
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	defer lock.Close()
	strategy := locks.Guard(lock, stock.NewLedger(db))
	return lockstest.Work(in, out, func(string) (locks.Strategy, error) { return strategy, nil })
}
