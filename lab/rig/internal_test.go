package rig

import (
	"bytes"
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

// `oversell reap` by mistake, on a folder that means something to somebody.
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

func TestNginxConf(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5} {
		upstreams := []string{"127.0.0.1:11", "127.0.0.1:12", "127.0.0.1:13", "127.0.0.1:14", "127.0.0.1:15"}[:n]
		text, err := nginxConf("127.0.0.1:80", "/scratch/nginx", "127.0.0.1:9", upstreams)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text, "/tmp/nginx") || !strings.Contains(text, "listen 127.0.0.1:80;") {
			t.Errorf("%d replicas: a path or address is left:\n%s", n, text)
		}
		var servers []string
		for line := range strings.Lines(text) {
			if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "server" && fields[1] != "{" {
				servers = append(servers, strings.TrimSuffix(fields[1], ";"))
			}
		}
		if strings.Contains(withoutComments(text), "resolve") {
			t.Errorf("%d replicas: Debian 12's nginx does not know resolve, and no Docker answers here:\n%s", n, text)
		}
		if !slices.Equal(servers, append(slices.Clone(upstreams), "127.0.0.1:9")) { // the page is the last
			t.Errorf("%d replicas: servers %v", n, servers)
		}
	}
}

// withoutComments returns the text of a configuration file that its program reads.
func withoutComments(text string) string {
	var kept strings.Builder
	for line := range strings.Lines(text) {
		code, _, _ := strings.Cut(line, "#")
		kept.WriteString(code + "\n")
	}
	return kept.String()
}

// What nginx.conf writes is under /tmp, and the rig knows all of it.
func TestNginxConfPaths(t *testing.T) {
	text, err := nginxConf("127.0.0.1:80", "/scratch", "127.0.0.1:9", []string{"127.0.0.1:11"})
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		code, _, _ := strings.Cut(line, "#")
		if strings.Contains(code, "/tmp") || strings.Contains(code, "/var") || strings.Contains(code, "/run") {
			t.Errorf("a path that the rig does not replace: %s", line)
		}
	}
}

func TestIsMySQL(t *testing.T) {
	for version, want := range map[string]bool{
		"/usr/sbin/mysqld  Ver 8.4.3 for Linux on x86_64 (MySQL Community Server - GPL)":                      true,
		"/usr/sbin/mysqld  Ver 8.0.36-0ubuntu0.22.04.1 for Linux on x86_64 ((Ubuntu))":                        true,
		"/opt/homebrew/opt/mysql/bin/mysqld  Ver 9.1.0 for macos14.7 on arm64 (Homebrew)":                     true,
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
	// The holder's server can listen, and others see that somebody does.
	listener, err := net.Listen("tcp", hostPort(first)) //nolint:noctx // does not block
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	one.release()
	if two.reserve(first) {
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

func TestCleanEnv(t *testing.T) {
	t.Setenv("MYSQL_DSN", "root@tcp(production)/shop")
	t.Setenv("LAB_TOKEN", "secret")
	for _, entry := range cleanEnv() {
		if strings.HasPrefix(entry, "MYSQL_DSN=") || strings.HasPrefix(entry, "LAB_TOKEN=") {
			t.Errorf("a replica would see %s", entry)
		}
	}
}
