package cli

import (
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"

	"oversell/lab/agent"
	"oversell/lab/report"
)

func agentCommand() *cobra.Command {
	var addr string
	c := agent.Config{Version: version}
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Send a part of the load of oversell run from this machine",
		Long: `Waits for oversell run --agents on another machine, and sends its share of the requests. One
machine may be too slow to load a service. Then start an agent on each of several machines.

The agent sends requests only to --target, only for a command with the same token and version, for
at most --max-time, and for one command at a time. A run stops when its command ends.
The token is sent without encryption: use an agent only in a network that you trust.

Ctrl-C ends the agent. A run in progress stops, and its result is marked as partial.`,
		Example: `  oversell agent --token TOKEN
  oversell agent --addr 10.0.0.6:8400 --target http://10.0.0.5:8080 --token TOKEN`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, errOut := cmd.Context(), cmd.ErrOrStderr()
			c.Machine = report.ThisMachine(ctx)
			c.Log = func(text string) { _, _ = fmt.Fprintln(errOut, time.Now().Format(time.TimeOnly), text) }
			a, err := agent.New(c)
			if err != nil {
				return usage("agent: %w", err)
			}
			listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
			if err != nil {
				return fmt.Errorf("agent: %w", err)
			}
			_, _ = fmt.Fprintf(errOut, "the agent for %s is on %s\n", c.Target, listener.Addr())
			return a.Serve(ctx, listener)
		},
	}
	f := cmd.Flags()
	f.StringVar(&addr, "addr", "127.0.0.1:8400", "host:port to listen on")
	f.StringVar(&c.Target, "target", "http://127.0.0.1:8080", "the only `URL` to which it sends requests, the same as that of oversell run")
	f.DurationVar(&c.MaxTime, "max-time", 10*time.Minute, "longest time of a run")
	addToken(f, &c.Token, "token that oversell run must have (default $LAB_TOKEN)")
	return cmd
}
