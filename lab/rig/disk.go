package rig

import (
	"fmt"
	"os"
	"slices"
)

// onDisk returns the command that runs c on a slow disk, see Config.Disk. strace delays the end of each fsync and
// fdatasync, also in programs without the C library, such as etcd. A filter in the kernel stops the program at these
// two calls only. Neither msync nor a write to a file that was opened with O_SYNC or O_DSYNC is delayed: none of our
// servers relies on them.
func (r *Rig) onDisk(c command) command {
	if r.cfg.Disk == 0 {
		return c
	}
	c.args = slices.Concat([]string{
		"-D", // the program stays our child, and strace is its own
		"-f", "--seccomp-bpf", "-qqq", "-o", os.DevNull, "-e", "signal=none", "-e", "trace=fsync,fdatasync",
		"-e", fmt.Sprintf("inject=fsync,fdatasync:delay_exit=%d", r.cfg.Disk.Microseconds()), "--", c.path,
	}, c.args)
	c.path = r.found.strace
	return c
}
