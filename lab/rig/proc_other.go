//go:build !linux

package rig

import "syscall"

// childAttr puts a child into a process group of its own: see proc_linux.go.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// renameProcess does nothing: it is for Linux only.
func renameProcess(string) {}

// groupFrozen returns true: only Linux shows the state of threads.
func groupFrozen(int) bool { return true }

// groupRuns reports whether the group has a process, be it a zombie.
func groupRuns(pgid int) bool { return groupExists(pgid) }

// membersIn finds no members on this system. It is sure only if the group has ended.
func membersIn(pgid int, _ string) (members []string, sure bool) { return nil, !groupExists(pgid) }
