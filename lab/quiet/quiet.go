// Package quiet decides whether other processes disturbed a measurement. On a busy machine, two
// runs of one lock differ more than the runs of two locks, so these figures must not be recorded.
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

// Times are the CPU times of all cores since the start of the machine.
type Times struct {
	Busy  time.Duration // of processes, and of other virtual machines
	Total time.Duration
}

// Others returns the share of the cores, 0 to 1, that other processes took between two readings.
// own is the CPU time of the measured processes.
func Others(before, after Times, own time.Duration) float64 {
	total := after.Total - before.Total
	if total <= 0 {
		return 0
	}
	// All times are rounded to ticks, so own may be slightly larger than the increase of Busy.
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

// Now reads the CPU times of this machine. It needs /proc/stat, which only Linux has.
func Now() (Times, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return Times{}, fmt.Errorf("this system does not report the CPU time of all processes: %w", err)
	}
	return parse(string(text))
}

// parse reads the first line: cpu user nice system idle iowait irq softirq steal ...
func parse(text string) (t Times, err error) {
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return t, fmt.Errorf("/proc/stat begins with %q instead of the times of all cores", line)
	}
	for i, name := range []string{"user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"} {
		n, err := strconv.ParseInt(fields[i+1], 10, 64)
		if err != nil {
			return Times{}, fmt.Errorf("/proc/stat: %w", err)
		}
		d := time.Duration(n) * 10 * time.Millisecond // the unit on all systems that Go supports
		t.Total += d
		switch name {
		case "idle", "iowait":
		case "irq", "softirq": // mostly caused by the packets of the load itself
		default:
			t.Busy += d
		}
	}
	return t, nil
}
