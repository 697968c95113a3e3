// Package quiet decides whether a measurement had the machine to itself. Figures that are
// written down must come from a quiet machine: on a busy one, two locks differ by less than
// two runs of the same lock.
package quiet

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Limit is the share of the cores that other processes may take during a measurement.
const Limit = 0.10

// Times are the CPU times of all cores together, since the machine was started.
type Times struct {
	Busy  time.Duration // spent in processes, and taken by other virtual machines
	Total time.Duration
}

// Others returns the share of the cores, 0 to 1, that other processes took between two
// readings. Own is the CPU time of the measured processes in between.
func Others(before, after Times, own time.Duration) float64 {
	total := after.Total - before.Total
	if total <= 0 {
		return 0
	}
	// Both are counted in ticks: own may be the larger one by a few.
	others := max(0, after.Busy-before.Busy-own)
	return float64(others) / float64(total)
}

// Check returns an error when others, a share of the cores, is more than Limit.
func Check(others float64) error {
	if others <= Limit {
		return nil
	}
	return fmt.Errorf("other processes took %.0f %% of the %d cores during the measurement, more than %.0f %%: "+
		"its figures must not be recorded; end the other programs and start again", 100*others, runtime.NumCPU(), 100*Limit)
}

// Now reads the CPU times of this machine. It fails where there is no /proc/stat, that is
// on every system but Linux.
func Now() (Times, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return Times{}, fmt.Errorf("this system does not say how much of the cores other processes take: %w", err)
	}
	return parse(string(text))
}

// tick is the unit of /proc/stat, USER_HZ, which is 100 on all that Go runs on.
const tick = 10 * time.Millisecond

// parse reads the first line: cpu user nice system idle iowait irq softirq steal ...
func parse(text string) (Times, error) {
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	const used = 9
	if len(fields) < used || fields[0] != "cpu" {
		return Times{}, fmt.Errorf("/proc/stat begins with %q, which is not the times of all cores", line)
	}
	var t Times
	for i, field := range fields[1:used] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return Times{}, fmt.Errorf("/proc/stat: %w", err)
		}
		d := time.Duration(n) * tick
		t.Total += d
		switch i {
		case 3, 4: // idle, and idle while a disk works
		case 5, 6: // interrupts, for whichever process: the load's own packets make most of them
		default:
			t.Busy += d
		}
	}
	return t, nil
}
