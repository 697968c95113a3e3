package rig

import "syscall"

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
