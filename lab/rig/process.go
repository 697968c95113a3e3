package rig

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
)

const tailLines, tailBytes = 15, 4096

type command struct {
	path string
	args []string
	env  []string // all its variables; nil means environment()
	dir  string   // where it works

	owner *syscall.Credential // nil means this user
}

type process struct {
	cmd  *exec.Cmd
	log  string        // path of its output
	done chan struct{} // closed when it has ended and been waited for
	err  error         // how it ended, once done is closed

	ready atomic.Bool // it has answered its probe
	asked atomic.Bool // the rig ended it
}

// gate is a shell script that starts the program in its arguments when it reads a line, and ends
// when its input ends. spawn writes the line after the reaper has the process group, so no program
// runs before. If the lab is killed before the line, the gate ends by itself. If nginx were started
// without the gate, its workers could continue to run after such a kill.
const gate = `read -r go && exec "$@" </dev/null`

// spawn starts a program with its output appended to the file at log. A program that can't be
// executed ends with status 126 or 127, and the reason in that file.
func (r *Rig) spawn(c command, log string) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // in our folder
	if err != nil {
		return nil, fmt.Errorf("rig: %w", err)
	}
	defer func() { _ = out.Close() }()
	cmd := exec.Command("/bin/sh", append([]string{"-c", gate, "gate", c.path}, c.args...)...) //nolint:gosec,noctx // ends with its pipe
	cmd.Dir, cmd.Env = c.dir, c.env
	if cmd.Env == nil {
		cmd.Env = environment()
	}
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = out, out, childAttr(c.owner)
	open, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("rig: start %s: %w", c.path, err)
	}
	defer func() { _ = open.Close() }()
	r.launcher.do(func() { err = cmd.Start() })
	if err != nil {
		return nil, fmt.Errorf("rig: start %s: %w", c.path, err)
	}
	p := &process{cmd: cmd, log: log, done: make(chan struct{})}
	err = r.reaper.watch(p.pid())
	if err == nil {
		_, err = io.WriteString(open, "go\n")
	}
	go p.wait(r.reaper)
	if err != nil {
		p.kill()
		return nil, fmt.Errorf("rig: start %s: %w", c.path, err)
	}
	return p, nil
}

// environment returns more, and this program's variables in inherited or with the prefix LC_. Many
// others would configure `oversell serve`, etcd and ZooKeeper as a flag does.
func environment(more ...string) []string {
	inherited := []string{
		"PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ",
		"LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", // of servers that were unpacked, not installed
		"JAVA_HOME",
		"GOGC", "GODEBUG", "GOTRACEBACK", "GORACE", "GOCOVERDIR", // of a replica's Go
	}
	var env []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if slices.Contains(inherited, name) || strings.HasPrefix(name, "LC_") {
			env = append(env, entry)
		}
	}
	return append(env, more...)
}

func (r *Rig) run(ctx context.Context, name, log string, c command) error {
	p, err := r.spawn(c, filepath.Join(r.dir, log))
	if err != nil {
		return err
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		p.kill()
		return fmt.Errorf("rig: %s: %w", name, ctx.Err())
	}
	if p.err != nil {
		return fmt.Errorf("rig: %s: %w, its log ends with:\n%s", name, p.err, p.tail())
	}
	return nil
}

// wait waits until the process has ended, and then kills the processes that are left in its group.
// Otherwise the workers of a killed nginx would still serve on its port.
func (p *process) wait(reaper *reaper) {
	p.err = p.cmd.Wait()
	killGroup(p.pid())
	awaitGroup(p.pid())
	reaper.forget(p.pid())
	close(p.done)
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) ended() bool { return isClosed(p.done) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (p *process) kill() {
	p.asked.Store(true)
	killGroup(p.pid())
	<-p.done
}

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
