//go:build !linux

package rig

import "syscall"

// childAttr puts a child into a process group of its own: see proc_linux.go.
func childAttr(owner *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: owner}
}

func renameProcess(string) {}

// groupFrozen returns true: only Linux shows the state of threads.
func groupFrozen(int) bool { return true }

func groupRuns(pgid int) bool { return groupExists(pgid) }

// membersIn returns no processes, because it cannot find them on this system. sure is true only if
// the group has no process at all.
func membersIn(pgid int, _ string) (members []string, sure bool) { return nil, !groupExists(pgid) }
