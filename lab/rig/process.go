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

// gate starts the program of its arguments when it reads a line, and ends when there is
// none to come. So no program runs before the reaper knows of its group: a lab that is
// killed in between, and on a busy machine that takes a while, leaves a gate that ends by
// itself, and not the workers that nginx forked in the meantime.
const gate = `read -r go && exec "$@" </dev/null`

// spawn starts cmd with its output appended to the file at log. A program that can't be
// executed ends with status 126 or 127, and the reason in that file.
func (r *Rig) spawn(cmd *exec.Cmd, log string) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // in our folder
	if err != nil {
		return nil, fmt.Errorf("rig: %w", err)
	}
	defer func() { _ = out.Close() }()
	shut, open, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("rig: %w", err)
	}
	defer func() { _, _ = shut.Close(), open.Close() }()

	gated := exec.Command("/bin/sh", append([]string{"-c", gate, "gate", cmd.Path}, cmd.Args[1:]...)...) //nolint:gosec,noctx // ends with its pipe
	gated.Dir, gated.Env = cmd.Dir, cmd.Env
	if gated.Env == nil {
		gated.Env = environment()
	}
	gated.Stdin, gated.Stdout, gated.Stderr = shut, out, out
	gated.SysProcAttr = childAttr()
	r.launcher.do(func() { err = gated.Start() })
	if err != nil {
		return nil, fmt.Errorf("rig: start %s: %w", cmd.Path, err)
	}
	p := &process{cmd: gated, log: log, done: make(chan struct{})}
	err = r.reaper.watch(p.pid())
	if err == nil {
		_, err = open.WriteString("go\n")
	}
	go p.wait(r.reaper)
	if err != nil {
		p.kill()
		return nil, fmt.Errorf("rig: start %s: %w", cmd.Path, err)
	}
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
	removeClockShare(p.pid())
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

// freeze stops the group and returns when it stands still.
func (p *process) freeze() error {
	if err := syscall.Kill(-p.pid(), syscall.SIGSTOP); err != nil {
		return err
	}
	for end := time.Now().Add(groupPatience); !groupFrozen(p.pid()); time.Sleep(time.Millisecond) {
		switch {
		case p.ended():
			return os.ErrProcessDone
		case time.Now().After(end):
			return errors.New("it does not stand still")
		}
	}
	return nil
}

// thaw lets the group go on. One that is gone is fine.
func (p *process) thaw() error {
	if err := syscall.Kill(-p.pid(), syscall.SIGCONT); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
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
