package cli_test

import (
	"bufio"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestDashCommand serves the page for testLab until Ctrl-C.
func TestDashCommand(t *testing.T) {
	addrs := testLab.Addresses()
	cmd := exec.CommandContext(t.Context(), built(), "dash", "--addr", "127.0.0.1:0", "--target", addrs.Target,
		"--replicas", strings.Join(addrs.Replicas, ","), "--token", token)
	errOut, err := cmd.StderrPipe()
	must(t, err)
	must(t, cmd.Start())
	line, err := bufio.NewReader(errOut).ReadString('\n')
	at := regexp.MustCompile(`^the page for (\S+) is on (127\.0\.0\.1:\d+)\n$`).FindStringSubmatch(line)
	if at == nil || at[1] != addrs.Target {
		t.Fatalf("it printed %q, %v", line, err)
	}
	if text := page(t, "http://"+at[2]+"/"); !strings.Contains(text, "<html") {
		t.Errorf("the page: %s", text)
	}
	must(t, cmd.Process.Signal(os.Interrupt))
	if err := cmd.Wait(); err != nil {
		t.Errorf("after Ctrl-C: %v", err)
	}
}

// TestMigrateCommand updates the tables of testLab, which are up to date.
func TestMigrateCommand(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), built(), "migrate")
	cmd.Env = append(os.Environ(), "MYSQL_DSN="+testLab.Addresses().MySQL)
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "schema is up to date\n" {
		t.Errorf("%v, %s", err, out)
	}
}
