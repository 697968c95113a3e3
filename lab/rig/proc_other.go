//go:build !linux

package rig

import "syscall"

// childAttr puts a child into a process group of its own. Without Linux's
// Pdeathsig a program killed between a fork and its report to the reaper, an
// instant, leaves that one server running.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// groupRuns is whether the group has a process, be it a zombie.
func groupRuns(pgid int) bool { return groupExists(pgid) }
