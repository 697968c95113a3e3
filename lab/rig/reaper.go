package rig

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// reapingEnv is set for a reaper. A test binary that is started as one but does not
// know about reapers would run its tests, start a rig, and so itself, for ever.
const reapingEnv = "OVERSELL_REAPING"

// reaperReady is the reaper's answer when the folder exists, reaperFailed begins the one
// that says why it does not.
const reaperReady, reaperFailed = "ready", "failed:"

// Reap is the body of `oversell reap DIR`. It creates the folder dir, which must not
// exist yet, answers on out, and reads from in which process groups are in use: lines
// `+pid` and `-pid`. When in ends, because the rig has closed or its program has died,
// it kills the groups that are left and removes the folder.
func Reap(dir string, in io.Reader, out io.Writer) error {
	// Ctrl-C and a closing terminal are for the rig. SIGPIPE comes when the rig dies
	// before it has read our answer: no reason to leave the folder.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	renameProcess("lab-reaper") // whom `killall oversell` spares
	return reap(dir, in, out)
}

// reap is Reap for a process that does more than that: its children would ignore the
// signals as well.
func reap(dir string, in io.Reader, out io.Writer) error {
	// Mkdir and not MkdirAll: a folder that is there already is never ours to remove.
	if err := os.Mkdir(dir, 0o700); err != nil {
		_, _ = fmt.Fprintln(out, reaperFailed, err)
		return fmt.Errorf("reap: %w", err)
	}
	lock, err := createGroups(dir)
	if err != nil {
		_, _ = fmt.Fprintln(out, reaperFailed, err)
		return errors.Join(fmt.Errorf("reap: %w", err), removeAll(dir))
	}
	defer func() { _ = lock.Close() }()
	_, _ = fmt.Fprintln(out, reaperReady)

	groups := readGroups(in)
	for pid := range groups {
		killGroup(pid)
	}
	for pid := range groups {
		awaitGroup(pid, groupPatience)
		removeClockShare(pid)
	}
	return removeAll(dir)
}

// readGroups reads to the end of in and returns the groups that were not taken back.
// A cut-off last line counts for nothing.
func readGroups(in io.Reader) map[int]bool {
	groups := map[int]bool{}
	for lines := bufio.NewReader(in); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return groups
		}
		pid, err := strconv.Atoi(strings.TrimSpace(line))
		switch {
		case err != nil || pid == 0:
			continue
		case pid > 1: // kill(-1) would end every process of the user
			groups[pid] = true
		default:
			delete(groups, -pid)
		}
	}
}

// removeAll removes dir, again and again for a few seconds, as a dying server may
// still write into it.
func removeAll(dir string) error {
	var err error
	for range 100 {
		if err = os.RemoveAll(dir); err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("reap: %w", err)
}

// reaper is the rig's end of the reaper process.
type reaper struct {
	cmd    *exec.Cmd
	pipe   *os.File // closing it is the order to clean up
	groups *os.File // the same lines, for the day on which we and the reaper are killed
}

// startReaper starts this program again as `reap dir` and waits until dir exists. It is
// not to be interrupted: a reaper that was left before its answer would be one to kill,
// and who would remove its folder then?
func startReaper(dir string) (*reaper, error) {
	if os.Getenv(reapingEnv) != "" {
		return nil, fmt.Errorf("rig: %w: this program was started as one", errNoReaper)
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("rig: start reaper: %w", err)
	}
	// No CommandContext: nothing but the end of the pipe may end it.
	cmd := exec.Command(program, "reap", dir) //nolint:gosec,noctx // this very program
	cmd.Env = append(os.Environ(), reapingEnv+"="+dir)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	r, answers, err := startWithPipes(cmd)
	if err != nil {
		return nil, fmt.Errorf("rig: start reaper: %w", err)
	}
	defer func() { _ = answers.Close() }()
	if err := hear(answers); err != nil {
		killGroup(cmd.Process.Pid) // not a reaper: a test binary at its tests, perhaps
		_ = r.close()
		return nil, err
	}
	if r.groups, err = openGroups(dir); err != nil {
		return nil, errors.Join(fmt.Errorf("rig: start reaper: %w", err), r.close())
	}
	return r, nil
}

// startWithPipes starts cmd with its input and its output connected to us.
func startWithPipes(cmd *exec.Cmd) (*reaper, *os.File, error) {
	in, pipe, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = in.Close() }()
	answers, out, err := os.Pipe()
	if err != nil {
		_ = pipe.Close()
		return nil, nil, err
	}
	defer func() { _ = out.Close() }()
	cmd.Stdin, cmd.Stdout = in, out
	if err := cmd.Start(); err != nil {
		_, _ = pipe.Close(), answers.Close()
		return nil, nil, err
	}
	return &reaper{cmd: cmd, pipe: pipe}, answers, nil
}

// errNoReaper is what a test binary does wrong that does not know about reapers.
var errNoReaper = errors.New("not a reaper (a test binary's TestMain must call rigtest.Main)")

// hear waits for the reaper's answer.
func hear(answers *os.File) error {
	_ = answers.SetReadDeadline(time.Now().Add(readyTimeout))
	line, err := bufio.NewReader(answers).ReadString('\n')
	switch line = strings.TrimSpace(line); {
	case line == reaperReady:
		return nil
	case strings.HasPrefix(line, reaperFailed):
		return fmt.Errorf("rig: the lab's folder:%s", strings.TrimPrefix(line, reaperFailed))
	case line != "":
		return fmt.Errorf("rig: start reaper: %w: it said %q", errNoReaper, line)
	default:
		return fmt.Errorf("rig: start reaper: %w: no answer: %w", errNoReaper, err)
	}
}

// watch has the group of pid killed if this program ends before forget is called.
func (r *reaper) watch(pid int) error {
	_, _ = fmt.Fprintf(r.groups, "+%d\n", pid) // on a full disk we live without
	if _, err := fmt.Fprintf(r.pipe, "+%d\n", pid); err != nil {
		return fmt.Errorf("tell reaper: %w", err)
	}
	return nil
}

// forget takes watch back. If the reaper can't be told it is dead, and forgets anyway.
func (r *reaper) forget(pid int) {
	_, _ = fmt.Fprintf(r.groups, "-%d\n", pid)
	_, _ = fmt.Fprintf(r.pipe, "-%d\n", pid)
}

// close has the reaper clean up and waits until it has.
func (r *reaper) close() error {
	_ = r.pipe.Close()
	defer func() { _ = r.groups.Close() }()
	if err := r.cmd.Wait(); err != nil {
		return fmt.Errorf("rig: reaper: %w", err)
	}
	return nil
}
