package load

import (
	"fmt"
	"os"
	"time"

	"github.com/prometheus/procfs"
)

// Processor has the CPU times of all cores since the start of the machine.
type Processor struct {
	Busy  time.Duration // of processes, and of other virtual machines
	Total time.Duration
}

// ReadProcessor reads the times from /proc/stat, which only Linux has.
func ReadProcessor() (Processor, error) {
	proc, err := procfs.NewDefaultFS()
	var stat procfs.Stat
	if err == nil {
		stat, err = proc.Stat()
	}
	if err != nil {
		return Processor{}, fmt.Errorf("this system does not report the CPU time of all processes: %w", err)
	}
	return processorOf(stat.CPUTotal), nil
}

// processorOf leaves the interrupts out of Busy: most are caused by the packets of the load itself.
func processorOf(cpu procfs.CPUStat) Processor {
	busy := cpu.User + cpu.Nice + cpu.System + cpu.Steal
	all := busy + cpu.Idle + cpu.Iowait + cpu.IRQ + cpu.SoftIRQ
	return Processor{Busy: seconds(busy), Total: seconds(all)}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Others returns the share of the cores, 0 to 1, that other processes took since before. own is the CPU time of the
// measured processes.
func (p Processor) Others(before Processor, own time.Duration) float64 {
	// All times are rounded to ticks, so own may be slightly larger than the increase of Busy.
	return p.Share(before, max(0, p.Busy-before.Busy-own))
}

// Share returns the share of the cores, 0 to 1, that the CPU time used was since before.
func (p Processor) Share(before Processor, used time.Duration) float64 {
	if p.Total <= before.Total {
		return 0
	}
	return float64(used) / float64(p.Total-before.Total)
}

// ProcessTimes returns the CPU time of a process, and that of it and all its living descendants.
func ProcessTimes(pid int) (own, tree time.Duration, err error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return 0, 0, fmt.Errorf("read the CPU times of the processes: %w", err)
	}
	used, children := map[int]time.Duration{}, map[int][]int{}
	for _, proc := range all {
		if stat, err := proc.Stat(); err == nil { // it may have ended
			used[stat.PID] = seconds(stat.CPUTime())
			children[stat.PPID] = append(children[stat.PPID], stat.PID)
		}
	}
	for open := []int{pid}; len(open) > 0; open = append(open[1:], children[open[0]]...) {
		tree += used[open[0]]
	}
	return used[pid], tree, nil
}

// Usage has the CPU times of the machine, of this process, and of this process with all that it has started.
type Usage struct {
	machine   Processor
	own, tree time.Duration
}

// ReadUsage reads the times. Only Linux has them: elsewhere they are 0.
func ReadUsage() (u Usage) {
	machine, err := ReadProcessor()
	if err == nil {
		u.machine = machine
		u.own, u.tree, _ = ProcessTimes(os.Getpid())
	}
	return u
}

// Since returns the share of the cores, 0 to 1, that this process took since before, and the share of others than
// this process and what it has started.
func (u Usage) Since(before Usage) (own, others float64) {
	return u.machine.Share(before.machine, u.own-before.own), u.machine.Others(before.machine, u.tree-before.tree)
}
