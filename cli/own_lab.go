package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"oversell/lab/rig"
)

// ownLab has the flags for the lab that a command starts.
type ownLab struct {
	replicas    int
	delay, disk time.Duration
	fsync       bool
	set         *pflag.FlagSet
}

func (l *ownLab) register(set *pflag.FlagSet) {
	l.set = set
	set.IntVar(&l.replicas, "replicas", 3, "number of replicas of the lab that this command starts, 1 to 50")
	set.DurationVar(&l.delay, "delay", 0, "let each answer of a server of that lab reach a replica later by this time, in whole milliseconds, 1ms to 1s")
	set.BoolVar(&l.fsync, "fsync", false, "let the servers of that lab sync each write to the disk before they answer")
	set.DurationVar(&l.disk, "disk", 0, "like --fsync, and each sync takes this time longer than on this machine's disk, 1us to 1s; needs strace")
}

// check checks the flags. target is the address of the lab, if the command starts none.
func (l *ownLab) check(target string) error {
	l.fsync = l.fsync || l.disk != 0
	switch {
	case target != "" && l.set.Changed("replicas"):
		return errors.New("--replicas is only for a lab that this command starts: the lab at --target has its replicas already")
	case target != "" && (l.set.Changed("delay") || l.fsync):
		return errors.New("--delay, --fsync and --disk are only for a lab that this command starts, not for the lab at --target")
	case l.set.Changed("delay") && (l.delay < time.Millisecond || l.delay > time.Second || l.delay%time.Millisecond != 0):
		return fmt.Errorf("delay %s: must be whole milliseconds, 1ms to 1s", l.delay)
	case l.set.Changed("disk") && (l.disk < time.Microsecond || l.disk > time.Second):
		return fmt.Errorf("disk %s: must be 1us to 1s", l.disk)
	case target == "" && (l.replicas < 1 || l.replicas > 50):
		return fmt.Errorf("--replicas %d: must be 1 to 50", l.replicas)
	}
	return nil
}

func (l *ownLab) configure(cfg *rig.Config) {
	cfg.Replicas, cfg.Delay, cfg.Proxied, cfg.Fsync, cfg.Disk = l.replicas, l.delay, l.delay > 0, l.fsync, l.disk
}
