package rig_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

// TestFailedStart lets a replica die at its start, and when it is ready before the lab is. Start must return
// an error at once, and leave no folder.
func TestFailedStart(t *testing.T) {
	script := filepath.Join(t.TempDir(), "oversell")
	must(t, os.WriteFile(script, []byte("#!/bin/sh\necho no beans left >&2\nexit 3\n"), 0o700)) //nolint:gosec // a program
	dying := everything()
	dying.Nginx, dying.Replicas, dying.Redis = false, 1, 1
	dying.ReplicaArgs = []string{"--dies-when-asked-for-its-backends"}
	for _, test := range []struct {
		cfg  rig.Config
		says []string
	}{
		{rig.Config{Redis: 1, Replicas: 2, Binary: script, Token: "x"}, []string{"replica-", "exit status 3", "no beans left"}},
		{dying, []string{"replica-1 died before the lab was ready", "signal: killed", "the last words"}},
	} {
		before := labFolders(t)
		_, err := rig.Start(t.Context(), test.cfg)
		if err == nil {
			t.Fatal("no error")
		}
		for _, want := range test.says {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("the error does not say %q: %v", want, err)
			}
		}
		if after := labFolders(t); after != before {
			t.Errorf("folders before: %s, after: %s", before, after)
		}
	}
}

// TestPortInUse: a required port that another program has is an error, which names the program. So is one that
// another lab has reserved. Servers after the first of a kind have the next ports.
func TestPortInUse(t *testing.T) {
	here := fmt.Sprintf("(process %d)", os.Getpid())
	tcp, err := net.Listen("tcp", "[::]:0") //nolint:gosec,noctx // on all addresses, as ZooKeeper does by default
	must(t, err)
	defer func() { _ = tcp.Close() }()
	port := tcp.Addr().(*net.TCPAddr).Port
	udp, err := net.ListenPacket("udp4", "127.0.0.1:0") //nolint:noctx // as a lab reserves a port
	must(t, err)
	defer func() { _ = udp.Close() }()
	reserved := udp.LocalAddr().(*net.UDPAddr).Port

	ports := rig.Ports{Backends: rig.BackendPorts{Redis: port - 1, Etcd: reserved}}
	_, err = rig.Start(t.Context(), rig.Config{Redis: 2, Etcd: 1, Ports: ports})
	if err == nil {
		t.Fatal("no error")
	}
	for _, server := range []string{fmt.Sprintf("port %d (redis-2)", port), fmt.Sprintf("port %d (etcd)", reserved)} {
		_, named, _ := strings.Cut(err.Error(), server+" is in use by ")
		if name, _, _ := strings.Cut(named, "\n"); runtime.GOOS == "linux" && !strings.Contains(name, here) {
			t.Errorf("%s is not said to be in use by this program, %s: %v", server, here, err)
		}
	}
	if !strings.Contains(err.Error(), "End these programs") {
		t.Errorf("the error does not say what to do: %v", err)
	}
}

// TestUnfitTemporaryFolder checks that Start fails if TMPDIR names a folder in which no lab can
// run, and that the error names the cause.
func TestUnfitTemporaryFolder(t *testing.T) {
	tmp := t.TempDir()
	file := filepath.Join(tmp, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for dir, want := range map[string]string{
		filepath.Join(tmp, "nowhere"): "no such file or directory. Create it, or set TMPDIR",
		file:                          "is not a folder",
		filepath.Join(tmp, "a b"):     `has ' ' in its path`,
		filepath.Join(tmp, `a"b`):     `has '"' in its path`,
		filepath.Join(tmp, "a'b"):     `has '\'' in its path`,
		filepath.Join(tmp, "a;b$c"):   `has ';' in its path`,
		filepath.Join(tmp, "临时"):      `has '临' in its path`,
	} {
		if want[0] == 'h' {
			must(t, os.Mkdir(dir, 0o700))
		}
		t.Setenv("TMPDIR", dir)
		_, err := rig.Start(t.Context(), rig.Config{Redis: 1})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "test binary") {
			t.Errorf("TMPDIR=%s: %v, want %q", dir, err, want)
		}
	}
}

// TestFullDisk checks that the error of Start names a full disk as the cause, or one without inodes. The last
// lines of a server's log, which are also in the error, do not name it.
func TestFullDisk(t *testing.T) {
	for option, want := range map[string]string{"size=20m": "MB are left on the disk of ", "nr_inodes=60": "no room for more files"} {
		tmp := t.TempDir()
		if out, err := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", option, "tmpfs", tmp).CombinedOutput(); err != nil {
			t.Skipf("a small disk is mounted by root, on Linux: %v, %s", err, out)
		}
		t.Cleanup(func() { must(t, syscall.Unmount(tmp, 0)) })
		t.Setenv("TMPDIR", tmp)
		_, err := rig.Start(t.Context(), rig.Config{MySQL: true})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "set TMPDIR to a folder on another disk") {
			t.Errorf("%s: the error does not name the cause: %v", option, err)
		}
	}
}

// TestRelativeTemporaryFolder checks that a relative TMPDIR names a folder in this program's
// working folder, although servers run in other folders.
func TestRelativeTemporaryFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, os.Mkdir("scratch", 0o700))
	t.Setenv("TMPDIR", "scratch")
	cfg := everything()
	cfg.Replicas = 1
	r := rigtest.Start(t, cfg)
	if !filepath.IsAbs(r.Dir()) || filepath.Base(filepath.Dir(r.Dir())) != "scratch" {
		t.Errorf("the folder is %s", r.Dir())
	}
}

// TestSweep kills a lab and its reaper at once. The next lab must end the processes that are left,
// such as nginx's workers, and log this. It must not touch running labs.
func TestSweep(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("this system has no /proc to find processes in")
	}
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	living := rigtest.Start(t, rig.Config{Redis: 1})
	foreign := filepath.Join(tmp, "oversell-lab-of-an-earlier-version")
	must(t, os.Mkdir(foreign, 0o700))

	cmd, ready := startHost(t, tmp, "ready")
	report := ready()
	must(t, cmd.Process.Signal(syscall.SIGSTOP))
	gone := report.PIDs // the kernel ends the servers, but not their children
	for _, line := range processesOf(t, report.Dir) {
		if strings.Contains(line, " reap ") {
			pid, _, _ := strings.Cut(line, " ")
			must(t, syscall.Kill(atoi(t, pid), syscall.SIGKILL))
			gone = append(gone, atoi(t, pid)) // until it is dead, its folder counts as in use
		}
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	if len(gone) != len(report.PIDs)+1 {
		t.Fatalf("%d reapers were found, want 1", len(gone)-len(report.PIDs))
	}
	for _, pid := range gone {
		eventually(t, "process "+strconv.Itoa(pid)+" is alive", func() bool { return !alive(pid) })
	}
	left := processesOf(t, report.Dir)
	if len(left) == 0 || listens(report.Addrs[len(report.Addrs)-4]) != nil {
		t.Logf("only the folder is left: %v", left)
	}

	var log bytes.Buffer
	rigtest.Start(t, rig.Config{Redis: 1, Log: &log})
	t.Logf("the second lab's log: %q", &log)
	if _, err := os.Stat(report.Dir); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
	eventually(t, "a process is left", func() bool { return len(processesOf(t, report.Dir)) == 0 })
	if !strings.Contains(log.String(), "killed together with its reaper") || !strings.Contains(log.String(), report.Dir) ||
		len(left) > 0 && !strings.Contains(log.String(), "nginx") {
		t.Errorf("it says %q, and there were %q", log.String(), left)
	}
	redisWrite(t, living.Addresses().Redis[0])
	for _, dir := range []string{living.Dir(), foreign} {
		if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
	}
}
