package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oversell/lab/rig"
	"oversell/locks/explore"
)

// replayTick lets a ZooKeeper end a session soon after its time-out.
const replayTick = 20 * time.Millisecond

// reallyAgain reports whether a schedule of memory should run on real servers.
func (f *exploreFlags) reallyAgain() bool {
	can, _ := explore.OnMySQL(f.trial.Strategy)
	return f.real && f.replay != "" && !can
}

// onServers runs one schedule in memory, and again on real servers that it starts.
func (f *exploreFlags) onServers(cmd *cobra.Command) error {
	ctx := cmd.Context()
	lab, err := startLab(ctx, true, cmd.ErrOrStderr(), func(cfg *rig.Config) {
		*cfg = rig.Config{MySQL: true, Redis: explore.RedisServers, Zookeeper: true, ZookeeperTick: replayTick, OnExit: cfg.OnExit}
	})
	if err != nil {
		return ended(ctx, fmt.Errorf("explore: %w", err))
	}
	a := lab.Addresses()
	f.trial.MySQL = a.MySQL
	return errors.Join(f.migrated(cmd, func() error {
		f.trial.MySQL = ""
		return f.compareReplay(cmd, explore.Servers{Redis: a.Redis, ZooKeeper: a.Zookeeper[0], MySQL: a.MySQL})
	}), lab.Close())
}

func (f *exploreFlags) compareReplay(cmd *cobra.Command, on explore.Servers) error {
	steps, memory, really, err := explore.ReplayOn(cmd.Context(), f.trial, strings.Split(f.replay, ","), on)
	printSteps(cmd.OutOrStdout(), steps)
	if errors.Is(err, explore.ErrTrail) {
		return usage("explore: --replay: %w", err)
	}
	if err != nil {
		return ended(cmd.Context(), fmt.Errorf("explore: on real servers, the schedule took another way: %w", err))
	}
	_, _ = fmt.Fprintf(cmd.OutOrStdout(), "in memory:       %s\non real servers: %s\n", memory, really)
	if memory.String() != really.String() {
		return errors.New("explore: the outcomes differ")
	}
	return nil
}
