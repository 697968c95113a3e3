package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"oversell/docs"
	"oversell/lab/load"
	"oversell/lab/rig"
	"oversell/lab/stepper"
	"oversell/view/terminal"
)

type stepFlags struct {
	solution bool
	keys     string
	pace     time.Duration
	lease    time.Duration
}

const stepLong = `Starts its own lab with the servers of this machine. In Docker, use the page, which has the same
step mode. A buys one piece through replica-1, B one through replica-2, and both pause at every
step of the strategy. Below each step stand the commands that the replica sent ("$ SELECT …").
These keys move the clients. They come from the terminal, from a pipe or from --keys; spaces and
new lines between the keys of a pipe or of --keys are ignored:

  a, b  let A or B go on to its next step
  s     the solution: the order with the fewest switches that loses an update
  r     start again
  q     quit

A replica pauses a request for at most half an hour. A request waits for the lock for at most
a minute.

With --solution, the program plays the order of steps that loses an update with the fewest switches
between A and B. Every order of the steps was recorded; a new strategy is recorded first.

Exit status:
  0    done, whether an update was lost or not
  1    something failed
  2    the strategy does not exist, or the command line is wrong
  130  stopped by Ctrl-C`

func stepCommand() *cobra.Command {
	var flags stepFlags
	cmd := &cobra.Command{
		Use:   "step STRATEGY",
		Short: "Walk two clients through a strategy, step by step, into the lost update",
		Long:  stepLong,
		Example: `  oversell step none
  oversell step redis
  oversell step mutex --solution
  oversell step redis-lua --keys 'aaaa bb'
  echo ab aaa bbb | oversell step none`,
		Args:              oneStrategy,
		ValidArgsFunction: offerStrategies(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := cardsOf(args); err != nil {
				return &exit{2, err}
			}
			if flags.lease < load.MinLease {
				return usage("--lease %v: must be %v or more", flags.lease, load.MinLease)
			}
			if flags.pace < 0 {
				return usage("--pace %v: must not be negative", flags.pace)
			}
			if cmd.Flags().Changed("keys") {
				if flags.solution {
					return usage("--keys and --solution exclude each other")
				}
				cmd.SetIn(strings.NewReader(flags.keys))
			}
			return flags.run(cmd, args[0])
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.keys, "keys", "", "the keys to press, instead of those of the terminal")
	f.BoolVar(&flags.solution, "solution", false, "play the order with the fewest switches between A and B that loses an update")
	f.DurationVar(&flags.pace, "pace", 0, "with --solution or s: pause after each move, so that a class can follow")
	f.DurationVar(&flags.lease, "lease", 10*time.Minute, "lease of the locks; a short one expires during a pause")
	return cmd
}

func (f *stepFlags) run(cmd *cobra.Command, strategy string) error {
	ctx, interrupt := context.WithCancel(cmd.Context())
	defer interrupt()
	started, err := startLab(ctx, false, cmd.ErrOrStderr(), func(cfg *rig.Config) {
		cfg.Log, cfg.Nginx, cfg.Replicas = nil, false, 2
		cfg.ReplicaArgs = []string{"--lease", f.lease.String()}
	})
	if err != nil {
		return err
	}
	err = f.walk(ctx, interrupt, started, strategy, cmd.InOrStdin(), cmd.OutOrStdout())
	return errors.Join(ended(ctx, err), started.Close())
}

func (f *stepFlags) walk(ctx context.Context, interrupt func(), started *rig.Rig, strategy string, in io.Reader, out io.Writer) error {
	lab, err := stepper.Open(started, strategy)
	if err != nil {
		return err
	}
	session := &session{lab: lab, out: out, on: out, pace: f.pace}
	if f.solution {
		return session.solve(ctx)
	}
	if file, ok := in.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		before, err := term.MakeRaw(int(file.Fd())) // to read a key without Enter
		if err != nil {
			return err
		}
		defer func() { _ = term.Restore(int(file.Fd()), before) }()
		session.out = rawTerminal{out}
		session.clear = terminal.Of(out).Moves
	}
	return session.run(ctx, readKeys(ctx, in, interrupt))
}

// ctrlC is the byte for Ctrl-C. A raw terminal sends this byte instead of a signal.
const ctrlC = 3

// readKeys skips white space. Ctrl-C calls interrupt even while the channel's reader is busy.
func readKeys(ctx context.Context, in io.Reader, interrupt func()) <-chan byte {
	keys := make(chan byte)
	go func() {
		defer close(keys)
		for buffered := bufio.NewReader(in); ; {
			key, err := buffered.ReadByte()
			if err != nil {
				return
			}
			switch key {
			case ' ', '\t', '\r', '\n':
				continue
			case ctrlC:
				interrupt()
			}
			select {
			case keys <- key:
			case <-ctx.Done():
				return
			}
		}
	}()
	return keys
}

// rawTerminal writes CR and LF for each LF, because a raw terminal needs CR and LF.
type rawTerminal struct{ out io.Writer }

func (r rawTerminal) Write(text []byte) (int, error) {
	_, err := io.WriteString(r.out, strings.ReplaceAll(string(text), "\n", "\r\n"))
	return len(text), err
}

type session struct {
	lab   *stepper.Lab
	out   io.Writer
	on    io.Writer // out without the changes for a raw terminal
	clear bool      // whether to clear the screen before each drawing
	pace  time.Duration
	round *stepper.Round
}

// run also polls the replicas: a client that waits for a lock continues without a keystroke.
func (l *session) run(ctx context.Context, keys <-chan byte) (err error) {
	if err := l.begin(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.round.Close()) }()
	l.draw()
	poll := time.NewTicker(250 * time.Millisecond)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case key, more := <-keys:
			if !more || key == 'q' {
				return nil
			}
			if err := l.press(ctx, key); err != nil {
				return err
			}
		case <-poll.C:
			news, err := l.round.Look(ctx)
			if err != nil {
				return err
			}
			if news {
				l.draw()
			}
		}
	}
}

func (l *session) press(ctx context.Context, key byte) error {
	switch key {
	case 'a', 'b':
		client := map[byte]stepper.Client{'a': stepper.A, 'b': stepper.B}[key]
		if l.round.State(client) == stepper.Ended {
			l.say(client.String() + " has its answer; r starts again")
			return nil
		}
		if err := l.round.Go(ctx, client); err != nil {
			return err
		}
		l.draw()
	case 's':
		if err := errors.Join(l.round.Close(), l.solve(ctx), l.begin(ctx)); err != nil {
			return err
		}
		l.say("\na, b: start again by hand   q: quit")
	case 'r':
		if err := errors.Join(l.round.Close(), l.begin(ctx)); err != nil {
			return err
		}
		l.draw()
	default:
		l.say(fmt.Sprintf("%q is not a key; use a, b, s, r or q", key))
	}
	return nil
}

func (l *session) begin(ctx context.Context) error {
	round, err := l.lab.Begin(ctx)
	if err != nil {
		return err
	}
	l.round = round
	return nil
}

func (l *session) draw() {
	if l.clear {
		fmt.Fprint(l.out, "\x1b[2J\x1b[H")
	} else {
		fmt.Fprintln(l.out)
	}
	l.round.Draw(l.out, l.screen())
	l.say("\na, b: A or B goes on   s: the solution   r: start again   q: quit")
}

// screen is asked for each drawing, because the terminal's width may change.
func (l *session) screen() terminal.Screen { return terminal.Of(l.on) }

func (l *session) say(line string) { fmt.Fprintln(l.out, l.screen().Wrap(line, 0)) }

// solve plays the recorded order of steps that loses an update with the fewest switches.
func (l *session) solve(ctx context.Context) error {
	const recording = "recording every order of the steps"
	rounds, bar := 0, terminal.NewBar(l.on)
	g, err := l.lab.GraphIn(ctx, docs.Steps, func() {
		if rounds++; bar != nil {
			bar.Draw(fmt.Sprintf("%s: round %d", recording, rounds), 0, 0, "")
		}
	})
	bar.Clear()
	if err != nil {
		return err
	}
	solution := g.Solution()
	if solution == nil {
		line := fmt.Sprintf("%s %s: no order of the steps loses an update. All of them were recorded, with leases that do not end.",
			terminal.Good, l.lab.Strategy)
		l.say("\n" + l.screen().Paint(terminal.Good, line))
		return nil
	}
	l.say(fmt.Sprintf("\n%s: fewest switches between A and B that lose an update: %d\n", l.lab.Strategy, solution.Switches))
	printed := 0
	return l.lab.Solve(ctx, *solution, func(round *stepper.Round) error {
		round.Print(l.out, printed, l.screen())
		printed = len(round.Log)
		select {
		case <-time.After(l.pace):
		case <-ctx.Done():
		}
		return nil
	})
}
