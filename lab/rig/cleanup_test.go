package rig_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"oversell/lab/rig/rigtest"
)

// TestNothingIsLeft ends a program that runs a rig, with several signals and at several moments. No
// process and no file may be left, not even of paused servers and of the fake clocks. Outside of make
// nightly it runs the cases that are marked.
func TestNothingIsLeft(t *testing.T) {
	for _, test := range []struct {
		name   string
		when   string // the signal comes when this file appears; empty means when all is ready
		signal syscall.Signal
		always bool
	}{
		{"ready/kill -9", "", syscall.SIGKILL, true},
		{"ready/ctrl-c", "", syscall.SIGINT, true},
		{"ready/no handler", "", syscall.SIGTERM, false},
		{"experiments/kill -9", "", syscall.SIGKILL, true},
		{"experiments/ctrl-c", "", syscall.SIGINT, true},
		{"folder made/kill -9", ".", syscall.SIGKILL, true},
		{"folder made/ctrl-c", ".", syscall.SIGINT, false},
		{"first server/kill -9", "redis-1.log", syscall.SIGKILL, false},
		{"first server/ctrl-c", "redis-1.log", syscall.SIGINT, true},
		{"mysql installs/kill -9", "mysql-install.log", syscall.SIGKILL, true},
		{"mysql installs/ctrl-c", "mysql-install.log", syscall.SIGINT, false},
		{"mysql starts/kill -9", "mysql.log", syscall.SIGKILL, false},
		{"nginx starts/kill -9", "nginx.log", syscall.SIGKILL, false},
		{"replica starts/ctrl-c", "replica-1.log", syscall.SIGINT, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if !test.always {
				rigtest.Nightly(t, "the other cases of TestNothingIsLeft")
			}
			tmp := t.TempDir() // its own, so that the test finds leftover files
			cmd, ready := startHost(t, tmp, strings.Split(test.name, "/")[0])
			var report hosted
			if test.when == "" {
				report = ready()
			} else {
				eventually(t, "no "+test.when, func() bool {
					found, _ := filepath.Glob(filepath.Join(tmp, "oversell-lab-*", test.when))
					return len(found) == 1
				})
			}
			must(t, cmd.Process.Signal(test.signal))
			if err := cmd.Wait(); test.when == "" && test.signal == syscall.SIGINT && err != nil {
				t.Errorf("the rig did not close well: %v", err) // such as a server that does not end
			}

			for _, addr := range report.Addrs {
				eventually(t, addr+" still listens", func() bool { return listens(addr) != nil })
			}
			for _, pid := range report.PIDs {
				eventually(t, "process "+strconv.Itoa(pid)+" is alive", func() bool { return !alive(pid) })
				eventually(t, "a fake clock is left", func() bool {
					left, err := filepath.Glob(fmt.Sprintf("/dev/shm/*faketime*_%d", pid))
					return err == nil && len(left) == 0
				})
			}
			// Every process of a rig names the rig's folder in its command line or works in that folder.
			var left []string
			defer func() {
				if t.Failed() {
					t.Log("left:", left)
				}
			}()
			eventually(t, "a process is left", func() bool { left = processesOf(t, tmp); return len(left) == 0 })
			eventually(t, "files are left", func() bool { return isEmpty(t, tmp) })
		})
	}
}

// startHost starts a program with a rig of its own, in the folder tmp. ready waits until the rig serves.
func startHost(t *testing.T, tmp, kind string) (cmd *exec.Cmd, ready func() hosted) {
	t.Helper()
	program, err := os.Executable()
	must(t, err)
	cmd = exec.CommandContext(t.Context(), program, "host", kind)
	cmd.Env, cmd.Stderr = append(os.Environ(), "TMPDIR="+tmp), t.Output()
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	return cmd, func() (report hosted) {
		must(t, json.NewDecoder(out).Decode(&report))
		if len(report.PIDs) < 9 {
			t.Fatalf("the host printed %+v", report)
		}
		return report
	}
}

// processesOf returns the command lines of the processes that name dir in their command lines or
// work below dir. Without /proc it finds none.
func processesOf(t *testing.T, dir string) (lines []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	must(t, err)
	for _, proc := range all {
		line, _ := os.ReadFile(filepath.Join(proc, "cmdline"))
		cwd, _ := os.Readlink(filepath.Join(proc, "cwd"))
		if strings.Contains(string(line), dir) || strings.HasPrefix(cwd, dir) {
			lines = append(lines, filepath.Base(proc)+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return lines
}

func isEmpty(t *testing.T, dir string) bool {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	return len(entries) == 0
}

func labFolders(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(os.TempDir(), "oversell-lab-"+strconv.Itoa(os.Getpid())+"-*"))
	must(t, err)
	return strings.Join(found, " ")
}

// listens returns nil if a server accepts connections at addr.
func listens(addr string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err == nil {
		_ = conn.Close()
	}
	return err
}

// alive reports whether the process exists. Zombies, which only init can end, do not count, unless their other
// threads still end: until then, they have their files.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	proc, err := procfs.NewProc(pid)
	if err != nil {
		return true // it has just ended, or this system has no /proc
	}
	stat, err := proc.Stat()
	return err != nil || stat.State != "Z" || stat.NumThreads > 1
}

// eventually waits for a condition, for a minute at most.
func eventually(t *testing.T, otherwise string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(otherwise)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func atoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	must(t, err)
	return n
}
