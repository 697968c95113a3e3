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

// childAttr puts a child into a process group of its own. Ctrl-C in the terminal does not reach
// that group, and one signal kills all of it.
//
// With Pdeathsig, the kernel kills the child when the *thread* that forked the child ends, even if
// the reaper was killed as well. Go ends threads now and then, and a server would die with such a
// thread for no visible reason. So the launcher's thread forks every child. Pdeathsig does not
// reach the processes that a child has started: only the reaper ends those.
//
// A child of another user gets a namespace for the shared memory of System V, which a killed
// PostgreSQL would leave behind.
func childAttr(owner *syscall.Credential) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: owner}
	if owner != nil {
		attr.Cloneflags = syscall.CLONE_NEWIPC
	}
	return attr
}

func renameProcess(name string) { _ = os.WriteFile("/proc/self/comm", []byte(name), 0) }

// groupRuns reports whether a process of the group runs. A zombie does not: it holds neither
// ports nor files. The worker of a killed master becomes a child of init, which removes zombies
// after a second in some containers, and never in others.
func groupRuns(pgid int) bool {
	if !groupExists(pgid) {
		return false
	}
	states, ok := groupStates(pgid, "/proc/[0-9]*/stat")
	for _, state := range states {
		if state != 'Z' && state != 'X' {
			return true
		}
	}
	return !ok
}

// groupFrozen reports whether SIGSTOP has stopped all threads: they stop at different moments.
func groupFrozen(pgid int) bool {
	states, _ := groupStates(pgid, "/proc/[0-9]*/task/[0-9]*/stat")
	for _, state := range states {
		if !strings.ContainsRune("TtZX", rune(state)) {
			return false
		}
	}
	return true
}

// membersIn returns the processes of a group whose working folder is dir or below dir, as `name
// (pid)`. The group's number alone proves nothing: the kernel may have given it to another group.
// If this system does not show working folders, sure is false.
func membersIn(pgid int, dir string) (members []string, sure bool) {
	if !groupExists(pgid) {
		return nil, true
	}
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved // as in the kernel's links
	}
	states, sure := groupStates(pgid, "/proc/[0-9]*/stat")
	for proc, state := range states {
		cwd, _ := os.Readlink(filepath.Join(proc, "cwd"))
		if state != 'Z' && strings.HasPrefix(cwd+"/", dir+"/") {
			name, _ := os.ReadFile(filepath.Join(proc, "comm")) //nolint:gosec // of /proc
			members = append(members, fmt.Sprintf("%s (%s)", bytes.TrimSpace(name), filepath.Base(proc)))
		}
	}
	return members, sure
}

// groupStates returns the state of each process, or of each thread, of a group. The keys are
// folders in /proc. pattern matches the stat files in these folders. Without /proc, ok is false.
func groupStates(pgid int, pattern string) (states map[string]byte, ok bool) {
	stats, _ := filepath.Glob(pattern)
	states = map[string]byte{}
	for _, path := range stats {
		stat, _ := os.ReadFile(path) //nolint:gosec // of /proc; empty if the process has just ended
		if group, state := groupAndState(stat); group == pgid {
			states[filepath.Dir(path)] = state
		}
	}
	return states, len(stats) > 0
}

// groupAndState parses `pid (name) state parent group …`; the name may hold spaces and parentheses.
func groupAndState(stat []byte) (group int, state byte) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 3 {
		return 0, 0
	}
	group, _ = strconv.Atoi(string(fields[2]))
	return group, fields[0][0]
}
