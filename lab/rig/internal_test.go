package rig

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestReadGroups(t *testing.T) {
	for _, test := range []struct {
		name, in string
		want     []int
	}{
		{"nothing", "", nil},
		{"two", "+12\n+34\n", []int{12, 34}},
		{"one is gone", "+12\n+34\n-12\n", []int{34}},
		{"gone twice, and back", "+12\n-12\n-12\n+12\n", []int{12}},
		{"cut off", "+12\n+34", []int{12}},
		{"never everybody", "+1\n+0\n+\nx\n\n", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []int
			for pid := range readGroups(strings.NewReader(test.in)) {
				got = append(got, pid)
			}
			slices.Sort(got)
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// TestReapRefusesExistingFolder checks that `oversell reap`, run by mistake on a folder with a
// user's file, returns an error and does not delete the file.
func TestReapRefusesExistingFolder(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "thesis.tex")
	if err := os.WriteFile(precious, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := reap(dir, strings.NewReader(""), &out); err == nil {
		t.Error("no error")
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
	if strings.Contains(out.String(), reaperReady) || out.Len() == 0 {
		t.Errorf("it answered %q", out.String())
	}
}

// TestNginxConf also checks that the rig replaces all paths to which nginx.conf makes nginx write.
func TestNginxConf(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5} {
		upstreams := []string{"127.0.0.1:11", "127.0.0.1:12", "127.0.0.1:13", "127.0.0.1:14", "127.0.0.1:15"}[:n]
		text, err := nginxConf("127.0.0.1:80", "/scratch/nginx", "127.0.0.1:9", upstreams)
		if err != nil {
			t.Fatal(err)
		}
		text = withoutComments(text)
		if !strings.Contains(text, "listen 127.0.0.1:80;") {
			t.Errorf("%d replicas: another address:\n%s", n, text)
		}
		for _, left := range []string{"/tmp", "/var", "/run"} {
			if strings.Contains(text, left) {
				t.Errorf("%d replicas: a path in %s is not replaced:\n%s", n, left, text)
			}
		}
		var servers []string
		for line := range strings.Lines(text) {
			if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "server" && fields[1] != "{" {
				servers = append(servers, strings.TrimSuffix(fields[1], ";"))
			}
		}
		if strings.Contains(text, "resolve") {
			t.Errorf("%d replicas: Debian 12's nginx does not know resolve, and no Docker answers here:\n%s", n, text)
		}
		if !slices.Equal(servers, slices.Concat(upstreams, upstreams, []string{"127.0.0.1:9"})) { // the page is the last
			t.Errorf("%d replicas: servers %v", n, servers)
		}
	}
}

// withoutComments returns the text of a configuration file without its comments.
func withoutComments(text string) string {
	var kept strings.Builder
	for line := range strings.Lines(text) {
		code, _, _ := strings.Cut(line, "#")
		kept.WriteString(code + "\n")
	}
	return kept.String()
}

func TestIsMySQL(t *testing.T) {
	for version, want := range map[string]bool{
		"/usr/sbin/mysqld  Ver 8.4.3 for Linux on x86_64 (MySQL Community Server - GPL)":                      true,
		"/usr/sbin/mysqld  Ver 8.0.36-0ubuntu0.22.04.1 for Linux on x86_64 ((Ubuntu))":                        true,
		"/opt/homebrew/opt/mysql/bin/mysqld  Ver 9.1.0 for macos14.7 on arm64 (Homebrew)":                     true,
		"/usr/sbin/mysqld  Ver 10.0.1 for Linux on x86_64 (MySQL Community Server - GPL)":                     true,
		"mysqld  Ver 5.7.44 for Linux on x86_64 (MySQL Community Server (GPL))":                               false,
		"mysqld  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)":                   false,
		"mysqld  Ver 8.99.1-MariaDB for debian-linux-gnu on x86_64":                                           false,
		"mysqld: error while loading shared libraries: libaio.so.1: cannot open shared object file: No such ": false,
	} {
		if got := isMySQL([]byte(version)); got != want {
			t.Errorf("%s: %t, want %t", version, got, want)
		}
	}
}

func TestPorts(t *testing.T) {
	var one, two ports
	defer one.release()
	defer two.release()
	first, err := one.take(0)
	if err != nil {
		t.Fatal(err)
	}
	if first < firstPort || first > lastPort {
		t.Errorf("port %d", first)
	}
	if second, err := two.take(first); err != nil || second == first {
		t.Errorf("another rig got %d too (%v)", second, err)
	}
	// A server can listen on the port that its rig has reserved. After the release, no other rig may
	// reserve the port, because the server still listens there.
	listener, err := net.Listen("tcp", hostPort(first)) //nolint:noctx // does not block
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	one.release()
	if two.reserve(first) == nil {
		t.Error("reserved a port on which a server listens")
	}
}

func TestTail(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	p := process{log: log}
	if got := p.tail(); got != "  (its log is empty)" {
		t.Errorf("no log: %q", got)
	}
	text := strings.Repeat("noise\n", 100_000) + strings.Repeat("last\n", tailLines)
	if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, want := p.tail(), strings.TrimRight(strings.Repeat("  last\n", tailLines), "\n"); got != want {
		t.Errorf("tail:\n%s", got)
	}
}

// TestEnvironment checks that the shell's variables do not configure a server. Replicas, etcd and
// ZooKeeper read many variables.
func TestEnvironment(t *testing.T) {
	for _, name := range []string{
		"MYSQL_DSN", "LAB_TOKEN", "CONNS", "LEASE", "ZK_SESSION", "ETCD_NAME", "JVMFLAGS", "UMASK", "MYSQL_HOME", "JAVA_TOOL_OPTIONS", "TMPDIR",
	} {
		t.Setenv(name, "1")
	}
	t.Setenv("LC_ALL", "C.UTF-8")
	env := environment("LEASE=10s")
	if !slices.Contains(env, "LEASE=10s") || !slices.Contains(env, "LC_ALL=C.UTF-8") || !slices.Contains(env, "PATH="+os.Getenv("PATH")) {
		t.Errorf("a server lacks a variable: %v", env)
	}
	for _, entry := range env {
		if strings.HasSuffix(entry, "=1") {
			t.Errorf("a server would see %s", entry)
		}
	}
}

// TestLooseOptions checks that settings that only some releases have begin with loose-. A release
// that lacks such a setting then ignores it instead of refusing to start.
func TestLooseOptions(t *testing.T) {
	conf, err := confFiles.ReadFile("conf/my.cnf")
	if err != nil {
		t.Fatal(err)
	}
	for option, since := range map[string]string{
		"innodb-redo-log-capacity":  "MySQL 8.0.30",
		"auto-generate-certs":       "a build of MySQL with OpenSSL",
		"innodb-snapshot-isolation": "MariaDB 10.6.18",
	} {
		if !strings.Contains(string(conf), "\nloose-"+option+"=") {
			t.Errorf("%s, which came with %s, is not loose", option, since)
		}
	}
}

// TestBesideMySQL checks that the message of errBesideMySQL does not advise "make servers", which
// does not install MariaDB on a machine with MySQL.
func TestBesideMySQL(t *testing.T) {
	err := fmt.Errorf("galera: %w", errBesideMySQL)
	if !errors.Is(err, ErrMissing) || strings.Contains(err.Error(), "make servers") || !strings.Contains(err.Error(), "tools/real-mysql.sh mariadb") {
		t.Errorf("without MariaDB beside MySQL: %v", err)
	}
}
