package main

import (
	"fmt"
	"runtime"
	"time"

	"github.com/prometheus/procfs"
)

// maxOthers is the share of the cores that other processes may take during a measurement. On a busy machine, two
// runs of one lock differ more than the runs of two locks, so these figures must not be recorded.
const maxOthers = 0.10

// cpuTimes are the CPU times of all cores since the start of the machine.
type cpuTimes struct {
	Busy  time.Duration // of processes, and of other virtual machines
	Total time.Duration
}

// shareOfOthers returns the share of the cores, 0 to 1, that other processes took between two readings.
// own is the CPU time of the measured processes.
func shareOfOthers(before, after cpuTimes, own time.Duration) float64 {
	total := after.Total - before.Total
	if total <= 0 {
		return 0
	}
	// All times are rounded to ticks, so own may be slightly larger than the increase of Busy.
	others := max(0, after.Busy-before.Busy-own)
	return float64(others) / float64(total)
}

// checkQuiet returns an error if others, a share of the cores, is more than maxOthers.
func checkQuiet(others float64) error {
	if others <= maxOthers {
		return nil
	}
	return fmt.Errorf("other processes took %.0f %% of the %d cores during the measurement, more than %.0f %%: "+
		"its figures must not be recorded; end the other programs and start again", 100*others, runtime.NumCPU(), 100*maxOthers)
}

// readTimes reads the CPU times of this machine, from /proc/stat, which only Linux has.
func readTimes() (cpuTimes, error) {
	proc, err := procfs.NewDefaultFS()
	var stat procfs.Stat
	if err == nil {
		stat, err = proc.Stat()
	}
	if err != nil {
		return cpuTimes{}, fmt.Errorf("this system does not report the CPU time of all processes: %w", err)
	}
	return times(stat.CPUTotal), nil
}

// times leaves the interrupts out of Busy: most are caused by the packets of the load itself.
func times(cpu procfs.CPUStat) cpuTimes {
	busy := cpu.User + cpu.Nice + cpu.System + cpu.Steal
	all := busy + cpu.Idle + cpu.Iowait + cpu.IRQ + cpu.SoftIRQ
	return cpuTimes{Busy: seconds(busy), Total: seconds(all)}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
