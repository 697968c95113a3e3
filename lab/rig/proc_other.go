//go:build !linux

package rig

import "syscall"

// childAttr puts a child into a process group of its own: see proc_linux.go.
func childAttr(owner *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: owner}
}
