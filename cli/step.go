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

	"oversell/lab/rig"
	"oversell/lab/stepper"
)

// stepFlags are the flags of `oversell step`.
type stepFlags struct {
	solution bool
	pace     time.Duration
	lease    time.Duration
}

func stepCommand() *cobra.Command {
	var flags stepFlags
	cmd := &cobra.Command{
		Use:   "step STRATEGY",
		Short: "Walk two clients through a strategy, step by step, into the lost update",
		Long: `Brings up a lab of its own, from the servers of this machine: in Docker, use the page,
which steps too. A buys one piece through replica-1, B one through replica-2,
and both are stopped at every step of the strategy. These keys move them; in a file or a
pipe, spaces and lines between them mean nothing:

  a, b  let A or B go on to its next step
  s     the solution: the shortest interleaving that loses an update
  r     start anew
  q     quit

A replica stops nobody for longer than half an hour; then the client goes on to its next
step by itself. Who waits for the lock for a minute gives up.

With --solution nobody steps: the program searches, with a real run for each schedule,
first without interruption, then with one, then with two; and plays what it found.

Exit status:
  0    done, whether an update was lost or not
  1    something failed
  2    no such strategy, or the command line cannot be run
  130  stopped by Ctrl-C`,
		Example: `  oversell step none
  oversell step redis
  oversell step mutex --solution
  echo ab aaa bbb | oversell step none`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return &exit{2, errors.New("step: name one strategy; `oversell strategies` lists them")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := known(args); err != nil {
				return &exit{2, fmt.Errorf("step: %w", err)}
			}
			if flags.lease < 100*time.Millisecond {
				return &exit{2, fmt.Errorf("step: --lease %v: must be 100ms or more", flags.lease)}
			}
			if flags.pace < 0 {
				return &exit{2, fmt.Errorf("step: --pace %v: must not be negative", flags.pace)}
			}
			return flags.run(cmd, args[0])
		},
	}
	f := cmd.Flags()
	f.BoolVar(&flags.solution, "solution", false, "search for the shortest interleaving that loses an update, and play it")
	f.DurationVar(&flags.pace, "pace", 0, "with --solution or s: a pause after each line, for a class to follow")
	f.DurationVar(&flags.lease, "lease", 10*time.Minute, "life of a grant; a short one ends while you talk")
	return cmd
}

func (f *stepFlags) run(cmd *cobra.Command, strategy string) error {
	ctx, interrupt := context.WithCancel(cmd.Context())
	defer interrupt()

	binary, err := os.Executable()
	if err != nil {
		return fmt.Errorf("step: %w", err)
	}
	cfg := rig.FullLab(binary, randomToken())
	cfg.OnExit = tellExit(cmd.ErrOrStderr())
	cfg.Ports, cfg.Nginx, cfg.Replicas = rig.Ports{}, false, 2
	cfg.ReplicaArgs = []string{"--lease", f.lease.String()}
	_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "starting a lab")
	started, err := rig.Start(ctx, cfg)
	if err != nil {
		return ended(ctx, fmt.Errorf("step: %w", err))
	}
	err = f.teach(ctx, interrupt, started, strategy, cmd.InOrStdin(), cmd.OutOrStdout())
	if errors.Is(err, context.Canceled) {
		err = errors.New("step: stopped")
	}
	return ended(ctx, errors.Join(err, started.Close()))
}

// teach runs the step mode in a lab that was started for it.
func (f *stepFlags) teach(ctx context.Context, interrupt func(), started *rig.Rig, strategy string, in io.Reader, out io.Writer) error {
	lab, err := stepper.Open(started.Addresses(), strategy)
	if err != nil {
		return err
	}
	session := &session{lab: lab, out: out, pace: f.pace}
	if f.solution {
		return session.solve(ctx)
	}
	if file, ok := in.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		before, err := term.MakeRaw(int(file.Fd())) // single keys, without Enter
		if err != nil {
			return fmt.Errorf("step: %w", err)
		}
		defer func() { _ = term.Restore(int(file.Fd()), before) }()
		session.out = rawTerminal{out}
		_, session.clear = terminal(out)
	}
	return session.give(ctx, keys(ctx, in, interrupt))
}

// ctrlC is what the key sends to a raw terminal, which makes no signal of it.
const ctrlC = 3

// keys are what is typed, without spaces and line ends, until the input ends. Ctrl-C
// interrupts at once, and does not wait for its turn.
func keys(ctx context.Context, in io.Reader, interrupt func()) <-chan byte {
	typed := make(chan byte)
	go func() {
		defer close(typed)
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
			case typed <- key:
			case <-ctx.Done():
				return
			}
		}
	}()
	return typed
}

// rawTerminal ends lines as a raw terminal needs it.
type rawTerminal struct{ out io.Writer }

func (r rawTerminal) Write(text []byte) (int, error) {
	if _, err := io.WriteString(r.out, strings.ReplaceAll(string(text), "\n", "\r\n")); err != nil {
		return 0, err
	}
	return len(text), nil
}

// session is a step mode under way.
type session struct {
	lab   *stepper.Lab
	out   io.Writer
	clear bool // the screen, before each drawing
	pace  time.Duration
	round *stepper.Round
}

var errQuit = errors.New("step: quit")

// give does what the keys say, until q or the end of the input. A client that waited
// for the lock goes on by itself, so it also looks when no key is pressed.
func (l *session) give(ctx context.Context, typed <-chan byte) (err error) {
	if err := l.begin(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.round.Close()) }()
	if err := l.draw(); err != nil {
		return err
	}
	look := time.NewTicker(250 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case key, more := <-typed:
			if !more {
				return nil
			}
			if err := l.press(ctx, key); err != nil {
				if errors.Is(err, errQuit) {
					return nil
				}
				return err
			}
		case <-look.C:
			news, err := l.round.Look(ctx)
			if err == nil && news {
				err = l.draw()
			}
			if err != nil {
				return err
			}
		}
	}
}

func (l *session) press(ctx context.Context, key byte) error {
	switch key {
	case 'a':
		return l.step(ctx, stepper.A)
	case 'b':
		return l.step(ctx, stepper.B)
	case 's':
		if err := errors.Join(l.round.Close(), l.solve(ctx), l.begin(ctx)); err != nil {
			return err
		}
		return l.say("\na, b: now you, from the start   q: quit")
	case 'r':
		if err := errors.Join(l.round.Close(), l.begin(ctx)); err != nil {
			return err
		}
		return l.draw()
	case 'q':
		return errQuit
	default:
		return l.say(fmt.Sprintf("%q is no key here; a, b, s, r and q are", key))
	}
}

func (l *session) step(ctx context.Context, who stepper.Client) error {
	if l.round.State(who) == stepper.Ended {
		return l.say(who.String() + " has its answer; r starts anew")
	}
	if err := l.round.Go(ctx, who); err != nil {
		return err
	}
	return l.draw()
}

func (l *session) begin(ctx context.Context) error {
	round, err := l.lab.Begin(ctx)
	if err != nil {
		return err
	}
	l.round = round
	return nil
}

func (l *session) draw() error {
	if l.clear {
		_, _ = io.WriteString(l.out, "\x1b[2J\x1b[H")
	} else {
		_, _ = io.WriteString(l.out, "\n")
	}
	if err := l.round.Draw(l.out); err != nil {
		return err
	}
	return l.say("\na, b: A or B goes on   s: the solution   r: start anew   q: quit")
}

func (l *session) say(line string) error {
	if _, err := fmt.Fprintln(l.out, line); err != nil {
		return fmt.Errorf("step: %w", err)
	}
	return nil
}

// solve searches for the lost update, and plays it.
func (l *session) solve(ctx context.Context) error {
	_, _ = io.WriteString(l.out, "\nlooking for a way to lose an update ")
	found, err := l.lab.Solve(ctx, func() { _, _ = io.WriteString(l.out, ".") })
	_, _ = io.WriteString(l.out, "\n")
	if err != nil {
		return err
	}
	return found.Print(l.out, l.lab.Strategy, func() {
		select {
		case <-time.After(l.pace):
		case <-ctx.Done():
		}
	})
}
