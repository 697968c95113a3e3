package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// tailLines and tailBytes bound what an error shows of a server's log.
const tailLines, tailBytes = 15, 4096

// process is one run of a program, with its process group.
type process struct {
	cmd  *exec.Cmd
	log  string        // path of its output
	done chan struct{} // closed when it has ended and been waited for
	err  error         // how it ended, once done is closed

	ready atomic.Bool // it has answered its probe
	asked atomic.Bool // we told it to end
}

// spawn starts cmd with its output appended to the file at log.
func (r *Rig) spawn(cmd *exec.Cmd, log string) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("rig: %w", err)
	}
	defer func() { _ = out.Close() }()
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = childAttr()

	r.launcher.do(func() {
		if err = cmd.Start(); err != nil {
			return
		}
		if err = r.reaper.watch(cmd.Process.Pid); err != nil {
			killGroup(cmd.Process.Pid)
			_ = cmd.Wait()
		}
	})
	if err != nil {
		return nil, fmt.Errorf("rig: start %s: %w", cmd.Path, err)
	}
	p := &process{cmd: cmd, log: log, done: make(chan struct{})}
	go p.wait(r.reaper)
	return p, nil
}

// run runs cmd to its end, with its output in the file at log. It is killed when ctx ends.
func (r *Rig) run(ctx context.Context, what, log string, cmd *exec.Cmd) error {
	p, err := r.spawn(cmd, log)
	if err != nil {
		return err
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		p.kill()
		return fmt.Errorf("rig: %s: %w", what, ctx.Err())
	}
	if p.err != nil {
		return fmt.Errorf("rig: %s: %w, its log ends with:\n%s", what, p.err, p.tail())
	}
	return nil
}

// wait ends when the process has, and sees to it that its group is gone: the workers
// of a killed nginx would serve on, on the same port.
func (p *process) wait(reaper *reaper) {
	p.err = p.cmd.Wait()
	killGroup(p.pid())
	awaitGroup(p.pid(), groupPatience)
	reaper.forget(p.pid())
	close(p.done)
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// terminate asks the process to end, and kills its group when it has not by the time
// that ctx ends. It returns an error if it had to.
func (p *process) terminate(ctx context.Context) error {
	p.asked.Store(true)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("terminate: %w", err)
	}
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		p.kill()
		return fmt.Errorf("had to be killed: %w", context.Cause(ctx))
	}
}

// kill ends the group at once and waits for it.
func (p *process) kill() {
	p.asked.Store(true)
	killGroup(p.pid())
	<-p.done
}

// status says how an ended process did so.
func (p *process) status() string { return p.cmd.ProcessState.String() }

// tail returns the last lines of the log, indented, or a remark that there are none.
func (p *process) tail() string {
	text, err := os.ReadFile(p.log)
	if err != nil || len(bytes.TrimSpace(text)) == 0 {
		return "  (its log is empty)"
	}
	text = text[max(0, len(text)-tailBytes):]
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	lines = lines[max(0, len(lines)-tailLines):]
	return "  " + strings.Join(lines, "\n  ")
}

// groupPatience is how long to wait for a killed group to vanish. SIGKILL can't be
// refused, but it takes effect a moment later.
const groupPatience = 2 * time.Second

// killGroup kills the process group led by pid. One that is gone already is fine.
func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

// awaitGroup returns when no process of the group runs, or patience has passed.
func awaitGroup(pid int, patience time.Duration) {
	for end := time.Now().Add(patience); groupRuns(pid) && time.Now().Before(end); {
		time.Sleep(2 * time.Millisecond)
	}
}

// groupExists is whether the group has a process, be it a zombie.
func groupExists(pid int) bool { return !errors.Is(syscall.Kill(-pid, 0), syscall.ESRCH) }
