package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"oversell/locks"
	"oversell/stock"
	"oversell/trial"
	"oversell/trial/lockstest"
	"oversell/view/terminal"
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
  1    the lock contradicts a claim, also before Ctrl-C, or the command failed
  2    inconclusive: the machine was too busy for a check; or the command does not follow the
       protocol, or the command line is wrong
  130  stopped by Ctrl-C, with the checks until then`,
		Example: `  oversell contract -- python3 adapters/examples/lock.py`,
		Args:    afterDash,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			lock, err := trial.Greet(ctx, args...)
			if err != nil {
				return &exit{2, err}
			}
			out := cmd.OutOrStdout()
			lab, err := startLab(ctx, quiet, cmd.ErrOrStderr(), lock.ContractLab)
			if err != nil {
				return err
			}
			contract, err := lock.CheckContract(ctx, lab.Addresses(), nil, trial.Printer{Out: out}.Checked)
			if err = errors.Join(err, lab.Close()); err != nil && ctx.Err() == nil {
				return err
			}
			return contractVerdict(out, contract, err)
		},
	}
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print only the result, no progress")
	return cmd
}

func contractVerdict(out io.Writer, contract trial.Contract, err error) error {
	text := contract.String()
	failed, basic := contract.Failed()
	if basic {
		text += " The other checks need a lock that passes this one, and were not run."
	}
	_, _ = fmt.Fprintln(out, "\n"+terminal.Of(out).Wrap(text, 0))
	return concluded(failed > 0, contract.Open() > 0, err)
}

// workerCommand is a process of the contract. Its environment names the adapter and the servers.
func workerCommand() *cobra.Command {
	return withSettings(&cobra.Command{
		Use:    "worker",
		Short:  "Run an adapter for a process that checks its contract",
		Hidden: true,
	}, func(*settings, *pflag.FlagSet) {}, func(cmd *cobra.Command, s *settings) error {
		return work(cmd.Context(), *s, cmd.InOrStdin(), cmd.OutOrStdout())
	})
}

func work(ctx context.Context, s settings, in io.Reader, out io.Writer) error {
	dsn, err := s.mysqlDSN(s.MySQL)
	if err != nil {
		return err
	}
	db, err := stock.Open(dsn, s.Conns)
	if err != nil {
		return err
	}
	lock, err := startAdapter(ctx, s)
	if err != nil {
		return err
	}
	defer lock.Close()
	strategy := locks.Guard(lock, stock.NewLedger(db))
	return lockstest.Work(in, out, func(string) (locks.Strategy, error) { return strategy, nil })
}
