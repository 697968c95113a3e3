package pin

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// Apart pins this process, which sends the load, to some of the cores that it may use. It returns their number and the
// other cores, for the servers. Of one or two cores, it pins nothing and returns none. Call it once, before a server is
// started.
func Apart() (load int, servers []int, err error) {
	cores, err := allowed()
	// In a container, the limit of its processor time may be lower than the number of its cores.
	servers, own := divide(cores[:min(len(cores), runtime.GOMAXPROCS(0))])
	if err != nil || own == nil {
		return 0, nil, err
	}
	runtime.GOMAXPROCS(len(own))
	return len(own), servers, process(own)
}

// allowed returns the cores on which the calling thread may run.
func allowed() (all []int, err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("read the cores of this process: %w", err)
	}
	for core := 0; len(all) < set.Count(); core++ {
		if set.IsSet(core) {
			all = append(all, core)
		}
	}
	return all, nil
}

// Thread pins the calling thread, which must be locked, and the processes that it starts from then on. undo lets the
// thread run where it could before.
func Thread(cores []int) (undo func(), err error) {
	before, err := allowed()
	if err != nil {
		return nil, err
	}
	return func() { _ = pin(0, before) }, pin(0, cores)
}

func pin(thread int, cores []int) error {
	var set unix.CPUSet
	for _, core := range cores {
		set.Set(core)
	}
	if err := unix.SchedSetaffinity(thread, &set); err != nil {
		return fmt.Errorf("pin to the cores %v: %w", cores, err)
	}
	return nil
}

// process pins all threads of this process. A thread that is not pinned yet may start another one, so it reads them
// until all are.
func process(cores []int) error {
	for pinned, before := map[int]bool{}, -1; len(pinned) > before; {
		threads, err := procfs.AllThreads(os.Getpid())
		if err != nil {
			return fmt.Errorf("read the threads of this process: %w", err)
		}
		before = len(pinned)
		for _, thread := range threads {
			if pinned[thread.PID] {
				continue
			}
			pinned[thread.PID] = true
			if err := pin(thread.PID, cores); err != nil && !errors.Is(err, unix.ESRCH) { // it has ended
				return err
			}
		}
	}
	return nil
}
