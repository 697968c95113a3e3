package cli

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// adoptStrays makes this process the parent of all its descendants whose parents have ended. A
// student's program may start a process in a session of its own, which no kill of a group reaches.
func adoptStrays() {
	const setChildSubreaper = 36 // PR_SET_CHILD_SUBREAPER of prctl(2)
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0)
}

// killStrays kills the children of this process, when the lab has been closed, and their children.
// It gives up after five seconds, if the children start new ones all the time.
func killStrays() error {
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		strays := children()
		if len(strays) == 0 {
			return nil
		}
		for _, pid := range strays {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		}
	}
	return fmt.Errorf("processes of the program still run: %v", children())
}

// children returns the processes whose parent is this process, without the lab's reaper, which ends
// by itself.
func children() (pids []int) {
	all, _ := procfs.AllProcs()
	for _, proc := range all {
		stat, err := proc.Stat() // an error means that it has ended
		if err == nil && stat.PPID == os.Getpid() && stat.Comm != "lab-reaper" {
			pids = append(pids, proc.PID)
		}
	}
	return pids
}
