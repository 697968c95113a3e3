package cli

import (
	"errors"
	"fmt"

	"oversell/lab/rig"
)

const labUsage = "use the lab whose addresses are in `FILE` (of oversell lab --json), or the newest one if FILE is running"

// runningLab is the value of --lab for the newest lab that runs.
const runningLab = "running"

func labAddresses(lab string) (rig.Addresses, error) {
	if lab != runningLab {
		return rig.ReadAddresses(lab)
	}
	addrs, err := rig.Running()
	if errors.Is(err, rig.ErrNoLab) {
		return addrs, fmt.Errorf("%w: start one with `oversell lab` (or make lab) in another terminal, or name the file of its addresses with --lab FILE", rig.ErrNoLab)
	}
	return addrs, err
}
