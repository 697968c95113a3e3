// Package quiet decides whether other processes disturbed a measurement. On a busy machine, two
// runs of one lock differ more than the runs of two locks, so these figures must not be recorded.
package quiet

import (
	"fmt"
	"runtime"
	"time"

	"github.com/prometheus/procfs"
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

// Now reads the CPU times of this machine, from /proc/stat, which only Linux has.
func Now() (Times, error) {
	proc, err := procfs.NewDefaultFS()
	var stat procfs.Stat
	if err == nil {
		stat, err = proc.Stat()
	}
	if err != nil {
		return Times{}, fmt.Errorf("this system does not report the CPU time of all processes: %w", err)
	}
	return times(stat.CPUTotal), nil
}

// times leaves the interrupts out of Busy: most are caused by the packets of the load itself.
func times(cpu procfs.CPUStat) Times {
	busy := cpu.User + cpu.Nice + cpu.System + cpu.Steal
	all := busy + cpu.Idle + cpu.Iowait + cpu.IRQ + cpu.SoftIRQ
	return Times{Busy: seconds(busy), Total: seconds(all)}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
