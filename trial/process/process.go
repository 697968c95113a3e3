// Package process runs a program beside this one, and exchanges messages with it over its standard
// input and output. Adapters and the workers of the conformance suite run so.
package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

// drainTimeout is the time for the last output of a process that has ended. A child of the process
// may keep its pipes open for ever.
const drainTimeout = 300 * time.Millisecond

// Process is a running program.
type Process struct {
	In *os.File // its standard input
	// Out is its standard output, which the reader closes. A read ends soon after the process, even if a
	// child has the pipe.
	Out *os.File

	cmd    *exec.Cmd
	log    tail
	exited chan struct{}
	err    error
}

// Start starts a program. Its standard error goes to log, which may be nil. With Setpgid, the program leads a process
// group, and the whole group is ended with it.
//
// If the caller dies, the program reads the end of its standard input, and exits. A program that is paused cannot read it.
// But then its group has no parent any more, and the kernel resumes and ends the paused processes of such a group.
func Start(cmd *exec.Cmd, log io.Writer) (*Process, error) {
	p := &Process{cmd: cmd, log: tail{to: log}, exited: make(chan struct{})}
	// The pipes of exec have no deadlines, and end only with all children of the process.
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = childIn.Close() }()
	out, childOut, err := os.Pipe()
	if err != nil {
		_ = in.Close()
		return nil, err
	}
	defer func() { _ = childOut.Close() }()
	p.In, p.Out = in, out
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = childIn, childOut, &p.log, drainTimeout
	if err := cmd.Start(); err != nil {
		_, _ = in.Close(), out.Close()
		return nil, err
	}
	go p.wait()
	return p, nil
}

func (p *Process) wait() {
	p.err = p.cmd.Wait()
	if errors.Is(p.err, exec.ErrWaitDelay) { // a child of the process has its standard error
		p.err = nil
	}
	p.Kill() // the children of the process
	_ = p.In.Close()
	_ = p.Out.SetReadDeadline(time.Now().Add(drainTimeout))
	close(p.exited)
}

// Exited returns a channel that is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Err returns how the process ended, and nil if its status was 0. Call it when the process has ended.
func (p *Process) Err() error { return p.err }

// PID returns the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Log returns the end of the standard error.
func (p *Process) Log() string {
	p.log.mu.Lock()
	defer p.log.mu.Unlock()
	return string(p.log.text)
}

// Signal sends a signal to the process, and to its whole group if it leads one.
func (p *Process) Signal(s syscall.Signal) error {
	if attr := p.cmd.SysProcAttr; attr != nil && attr.Setpgid {
		return syscall.Kill(-p.PID(), s)
	}
	return p.cmd.Process.Signal(s)
}

// Kill ends the process as a crash would. It does not wait for the end.
func (p *Process) Kill() { _ = p.Signal(syscall.SIGKILL) }

// Close ends the input of the process, and kills the process if it does not end in time. It returns
// an error if the process failed.
func (p *Process) Close(within time.Duration) error {
	_ = p.In.Close()
	select {
	case <-p.exited:
		return p.err
	case <-time.After(within):
		p.Kill()
		<-p.exited
		return fmt.Errorf("it did not end within %v after the end of its input", within)
	}
}

// tail passes the standard error on, and keeps its end for error messages.
type tail struct {
	to   io.Writer
	mu   sync.Mutex
	text []byte
}

// tailBytes is enough for a report of the race detector.
const tailBytes = 8192

func (t *tail) Write(text []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, text...)
	t.text = t.text[max(0, len(t.text)-tailBytes):]
	if t.to != nil {
		_, _ = t.to.Write(text) // an error must not end the program
	}
	return len(text), nil
}

// Quoted returns the words as one line for the shell, each in quotes if it needs them.
func Quoted(words ...string) string {
	all := make([]string, len(words))
	for i, word := range words {
		all[i] = word
		if !regexp.MustCompile(`^[\w@%+=:,./-]+$`).MatchString(word) {
			all[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(all, " ")
}
