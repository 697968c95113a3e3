package rig

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// groupTimeout limits the wait for a signal's effect: even SIGKILL takes effect a moment later.
const groupTimeout = 2 * time.Second

func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

func awaitGroup(pid int) {
	for end := time.Now().Add(groupTimeout); groupRuns(pid) && time.Now().Before(end); {
		time.Sleep(2 * time.Millisecond)
	}
	removeClockShare(pid)
}

// groupExists reports whether the group has a process, even a zombie.
func groupExists(pid int) bool { return !errors.Is(syscall.Kill(-pid, 0), syscall.ESRCH) }

// groupRuns reports whether a process of the group runs. A zombie does not: it holds neither
// ports nor files. The worker of a killed master becomes a child of init, which removes zombies
// after a second in some containers, and never in others.
func groupRuns(pgid int) bool {
	if !groupExists(pgid) {
		return false
	}
	members, sure := groupMembers(pgid)
	return len(members) > 0 || !sure
}

// groupFrozen reports whether SIGSTOP has stopped all threads: they stop at different moments. Only
// Linux shows their states, so elsewhere it returns true.
func groupFrozen(pgid int) bool {
	members, _ := groupMembers(pgid)
	for _, member := range members {
		threads, _ := procfs.AllThreads(member.PID)
		for _, thread := range threads {
			if stat, err := thread.Stat(); err == nil && !strings.ContainsAny(stat.State, "TtZX") {
				return false
			}
		}
	}
	return true
}

// membersIn returns the processes of a group whose working folder is dir or below dir, as `name
// (pid)`. The group's number alone proves nothing: the kernel may have given it to another group.
// If this system does not show working folders, sure is false.
func membersIn(pgid int, dir string) (names []string, sure bool) {
	if !groupExists(pgid) {
		return nil, true
	}
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved // as in the kernel's links
	}
	members, sure := groupMembers(pgid)
	for _, member := range members {
		if cwd, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", member.PID)); strings.HasPrefix(cwd+"/", dir+"/") {
			names = append(names, fmt.Sprintf("%s (%d)", member.Comm, member.PID))
		}
	}
	return names, sure
}

// groupMembers returns the processes of a group, without zombies. sure is false without /proc, which
// only Linux has.
func groupMembers(pgid int) (members []procfs.ProcStat, sure bool) {
	all, err := procfs.AllProcs()
	for _, proc := range all {
		stat, gone := proc.Stat()
		// The first thread of a killed program can be a zombie while its other threads still end. Until then, the
		// program has its files.
		ended := strings.ContainsAny(stat.State, "ZX") && stat.NumThreads <= 1
		if gone == nil && stat.PGRP == pgid && !ended {
			members = append(members, stat)
		}
	}
	return members, err == nil
}
