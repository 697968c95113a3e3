package rig

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// childAttr puts a child into a process group of its own, which Ctrl-C in the
// terminal does not reach and which one signal kills as a whole.
//
// Pdeathsig is for the day on which somebody kills the reaper as well: the kernel kills
// the child when the *thread* that forked it ends, not the process. Go ends threads now
// and then, and a server would die with one for no visible reason, so every child is
// forked by the launcher's thread. A child's own children stay: only the reaper ends those.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// renameProcess changes the name that ps and killall see.
func renameProcess(name string) { _ = os.WriteFile("/proc/self/comm", []byte(name), 0) }

// groupRuns is whether a process of the group runs. A zombie does not: it holds neither
// ports nor files, and how soon it goes is the affair of init, whose child the worker of a
// killed master becomes. In some containers init takes a second, in some it never looks.
func groupRuns(pgid int) bool {
	if !groupExists(pgid) {
		return false
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return true // no /proc to tell
	}
	for _, path := range stats {
		stat, err := os.ReadFile(path) //nolint:gosec // of /proc
		if err != nil {
			continue // it has just gone
		}
		if group, state := groupAndState(stat); group == pgid && state != 'Z' && state != 'X' {
			return true
		}
	}
	return false
}

// groupFrozen is whether each thread of the group has stopped: a signal reaches them one
// after another.
func groupFrozen(pgid int) bool {
	stats, err := filepath.Glob("/proc/[0-9]*/task/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return true // no /proc to tell
	}
	for _, path := range stats {
		stat, err := os.ReadFile(path) //nolint:gosec // of /proc
		if err != nil {
			continue // it has just gone
		}
		if group, state := groupAndState(stat); group == pgid && !strings.ContainsRune("TtZX", rune(state)) {
			return false
		}
	}
	return true
}

// groupAndState reads them from /proc/PID/stat: `pid (name) state parent group …`, where
// the name may hold spaces and parentheses.
func groupAndState(stat []byte) (group int, state byte) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 3 {
		return 0, 0
	}
	group, _ = strconv.Atoi(string(fields[2]))
	return group, fields[0][0]
}

// membersIn are the processes of a group that work in dir or below, as `name (pid)`. It is
// sure, as the number alone is not: the kernel may have given it to another group.
func membersIn(pgid int, dir string) (members []string, sure bool) {
	if !groupExists(pgid) {
		return nil, true
	}
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved // as the kernel has it
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return nil, false
	}
	for _, path := range stats {
		stat, err := os.ReadFile(path) //nolint:gosec // of /proc
		if err != nil {
			continue // it has just gone
		}
		cwd, _ := os.Readlink(filepath.Join(filepath.Dir(path), "cwd"))
		if group, state := groupAndState(stat); group == pgid && state != 'Z' && strings.HasPrefix(cwd+"/", dir+"/") {
			name, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "comm"))
			members = append(members, fmt.Sprintf("%s (%s)", bytes.TrimSpace(name), filepath.Base(filepath.Dir(path))))
		}
	}
	return members, true
}
