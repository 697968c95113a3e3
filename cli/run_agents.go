package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"oversell/lab/agent"
)

func (f *runFlags) checkAgents() error {
	count := len(f.agents)
	if count == 0 {
		return nil
	}
	if f.plan.Target == "" {
		return errors.New("--agents needs --target, the lab to which the agents send their requests")
	}
	fewest := f.plan.Clients
	if len(f.plan.Sweep) > 0 {
		fewest = slices.Min(f.plan.Sweep)
	}
	if fewest < count {
		return fmt.Errorf("clients %d: each of the %d agents needs one or more", fewest, count)
	}
	return agent.Addresses(f.agents)
}

// connectAgents lets the agents send the load, if the user named some. It prints their clocks.
func (f *runFlags) connectAgents(ctx context.Context, errOut io.Writer) (closeAgents func(), err error) {
	if len(f.agents) == 0 {
		return func() {}, nil
	}
	coordinator, err := agent.Dial(ctx, f.agents, version, f.plan.Token, f.plan.Target)
	if err != nil {
		return nil, err
	}
	if !f.quiet {
		for _, line := range coordinator.Clocks() {
			_, _ = fmt.Fprintln(errOut, line)
		}
	}
	f.plan.Send = coordinator.Run
	return coordinator.Close, nil
}
