package rig

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// reapingEnv is set in every reaper, and startReaper fails if it is set. Otherwise a test binary
// without rigtest.Main, started as a reaper, would run its tests and start reapers without end.
const reapingEnv = "OVERSELL_REAPING"

// The reaper answers reaperReady when the folder exists, or reaperFailed and the reason.
const reaperReady, reaperFailed = "ready", "failed:"

// Reap is the body of `oversell reap DIR`. It creates the folder dir, which must not exist yet, and
// writes the result to out. Then it reads from in which process groups are in use: a line `+pid`
// adds a group and `-pid` removes it. When in ends, because the rig has closed or its program has
// died, Reap kills the groups that are left and removes the folder.
func Reap(dir string, in io.Reader, out io.Writer) error {
	// The rig handles Ctrl-C and a closing terminal, so the reaper ignores these signals. SIGPIPE
	// comes when the rig dies before it has read our answer, and the folder must be removed even then.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	_ = os.WriteFile("/proc/self/comm", []byte("lab-reaper"), 0) // `killall oversell` must not end it
	return reap(dir, in, out)
}

// reap is Reap without ignored signals, which the children of a test would inherit.
func reap(dir string, in io.Reader, out io.Writer) error {
	// Mkdir fails for an existing folder, unlike MkdirAll: such a folder must not be removed.
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
		awaitGroup(pid)
	}
	return removeAll(dir)
}

// readGroups returns each pid with a line +pid and no later -pid. It ignores an incomplete line.
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

// removeAll retries for a few seconds: a dying server may still write into dir.
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

type reaper struct {
	cmd    *exec.Cmd
	pipe   io.WriteCloser // the reaper cleans up when this pipe is closed
	groups *os.File       // has the same lines, for the case that rig and reaper are killed
}

// startReaper starts this program again as `reap dir` and waits until dir exists. It has no context
// to cancel it: a reaper that is killed before its answer would leave the folder.
func startReaper(dir string) (*reaper, error) {
	if os.Getenv(reapingEnv) != "" {
		return nil, fmt.Errorf("rig: %w: this program is itself a reaper (%s is set)", errNoReaper, reapingEnv)
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("rig: start reaper: %w", err)
	}
	// No CommandContext: only the end of the pipe may end the reaper.
	cmd := exec.Command(program, "reap", dir) //nolint:gosec,noctx // this very program
	cmd.Env = append(os.Environ(), reapingEnv+"="+dir)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	pipe, err1 := cmd.StdinPipe()
	answers, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("rig: start reaper: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("rig: start reaper: %w", err)
	}
	r := &reaper{cmd: cmd, pipe: pipe}
	if err := awaitAnswer(answers); err != nil {
		killGroup(cmd.Process.Pid) // no reaper, but perhaps a test binary that runs its tests
		_ = r.close()
		return nil, err
	}
	if r.groups, err = openShared(filepath.Join(dir, groupsFile), os.O_APPEND|os.O_WRONLY); err != nil {
		return nil, errors.Join(fmt.Errorf("rig: start reaper: %w", err), r.close())
	}
	return r, nil
}

var errNoReaper = errors.New("this program cannot run as the process that ends leftover servers: in a test binary, TestMain must call rigtest.Main")

func awaitAnswer(answers io.ReadCloser) error {
	defer time.AfterFunc(readyTimeout, func() { _ = answers.Close() }).Stop()
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

// watch makes the reaper kill the group of pid if this program ends before forget is called.
func (r *reaper) watch(pid int) error {
	_, _ = fmt.Fprintf(r.groups, "+%d\n", pid) // an error, as on a full disk, does no harm
	if _, err := fmt.Fprintf(r.pipe, "+%d\n", pid); err != nil {
		return fmt.Errorf("notify reaper: %w", err)
	}
	return nil
}

// forget ends the watch of pid. An error does not matter: it means that the reaper is dead.
func (r *reaper) forget(pid int) {
	_, _ = fmt.Fprintf(r.groups, "-%d\n", pid)
	_, _ = fmt.Fprintf(r.pipe, "-%d\n", pid)
}

func (r *reaper) close() error {
	_ = r.pipe.Close()
	defer func() { _ = r.groups.Close() }()
	if err := r.cmd.Wait(); err != nil {
		return fmt.Errorf("rig: reaper: %w", err)
	}
	return nil
}
