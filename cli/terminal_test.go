package cli_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"oversell/lab/rig/rigtest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// tmux is a terminal of a fixed size, in which one command runs.
type tmux struct {
	t      *testing.T
	socket string
	raw    string // the file with all bytes that the command wrote
}

// startTmux runs a command line of the shell in a new terminal. The variables are added to the
// environment.
func startTmux(t *testing.T, width int, commandLine string, variables ...string) *tmux {
	t.Helper()
	dir, err := os.MkdirTemp("", "tmux") //nolint:usetesting // the name of t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	s := &tmux{t: t, socket: filepath.Join(dir, "socket"), raw: filepath.Join(dir, "raw")}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	config := filepath.Join(dir, "config")
	if err := os.WriteFile(config, []byte("set -g status off\nset -g history-limit 5000\nset -g default-terminal screen\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", s.socket, "kill-server").Run() }) //nolint:noctx // after the test's context
	// The command begins when its output is recorded. At the end, cat keeps the terminal open. The
	// shell itself survives Ctrl-C.
	script := fmt.Sprintf(`trap : INT; read go; %s; printf '\nexit %%s\n' $?; cat`, commandLine)
	cmd := exec.CommandContext(t.Context(), "tmux", "-f", config, "-S", s.socket, //nolint:gosec // a command of this test
		"new-session", "-d", "-x", fmt.Sprint(width), "-y", "60", "sh", "-c", script)
	cmd.Env = append(os.Environ(), append([]string{"LC_ALL=C.UTF-8", "COLUMNS=", "NO_COLOR=", "LAB_TOKEN=" + token}, variables...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("tmux, which `make browser` installs: %v\n%s", err, out)
	}
	s.tell("pipe-pane", "cat >"+s.raw)
	s.tell("send-keys", "Enter")
	return s
}

func (s *tmux) tell(args ...string) string {
	s.t.Helper()
	out, err := exec.CommandContext(s.t.Context(), "tmux", append([]string{"-S", s.socket}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// screen returns the text of the terminal with what was scrolled away.
func (s *tmux) screen() string {
	s.t.Helper()
	return trimmed(s.tell("capture-pane", "-p", "-S", "-"))
}

// visible returns the text that is in view.
func (s *tmux) visible() string {
	s.t.Helper()
	return trimmed(s.tell("capture-pane", "-p"))
}

func trimmed(text string) string {
	return strings.TrimRight(regexp.MustCompile(`(?m) +$`).ReplaceAllString(text, ""), "\n") + "\n"
}

// await waits until the terminal shows a text.
func (s *tmux) await(text string) {
	s.t.Helper()
	rigtest.Eventually(s.t, fmt.Sprintf("the terminal shows %q", text), func() (bool, string) {
		now := s.screen()
		return strings.Contains(now, text), now
	})
}

// checkWrapping checks that no line was continued in the next line of the terminal.
func (s *tmux) checkWrapping() {
	s.t.Helper()
	if joined, lines := trimmed(s.tell("capture-pane", "-p", "-J", "-S", "-")), s.screen(); joined != lines {
		s.t.Errorf("a line is wrapped:\n%s", lines)
	}
}

var (
	figure     = regexp.MustCompile(` *[0-9][0-9,.]*(ms\b|s\b)?`)
	conditions = regexp.MustCompile(`(?m)^(date|load|seed|target|machine|etcd|go|mysql|oversell|redis|zookeeper)( +)\S.*(\n +\S.*)*$`)
	ready      = regexp.MustCompile(`(?m)^(\S+ +ready on .*|ready after .*|starting a lab)\n`)
)

// placeholders replaces what differs from run to run: figures by #. In a table, where a figure
// follows two spaces or more, the # stands where the figure ends.
func placeholders(text string) string {
	text = ready.ReplaceAllString(text, "")
	text = conditions.ReplaceAllString(text, "$1$2…")
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		isVerdict := regexp.MustCompile(`^[✓✗▲?] `).MatchString(line)
		lines[i] = figure.ReplaceAllStringFunc(line, func(found string) string {
			spaces := len(found) - len(strings.TrimLeft(found, " "))
			if spaces >= 2 && !isVerdict {
				spaces = len(found) - 1
			}
			return strings.Repeat(" ", spaces) + "#"
		})
	}
	return strings.Join(lines, "\n")
}

func checkScreen(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "terminal", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test ./cli -run TestTerminal -update writes it anew). Got\n%s\nwant\n%s", path, got, want)
	}
}

// TestTerminal runs commands in a terminal of 100 columns, in make nightly also of 80 and 200, and compares
// what is seen.
func TestTerminal(t *testing.T) {
	run := built() + " run none for-update --clients 10 --loops 10 --stock 100 --hold 1ms --target " + testLab.Addresses().Target
	widths := []int{100}
	if rigtest.IsNightly() {
		widths = []int{80, 100, 200}
	}
	for _, width := range widths {
		for name, command := range map[string]string{
			"run": run, "strategies": built() + " strategies",
		} {
			t.Run(fmt.Sprintf("%s-%d", name, width), func(t *testing.T) {
				s := startTmux(t, width, command)
				s.await("\nexit 0")
				s.checkWrapping()
				screen := s.screen()
				if name != "strategies" { // which has no figures
					screen = placeholders(screen)
				}
				checkScreen(t, fmt.Sprintf("%s-%d", name, width), screen)
			})
		}
	}
}

// TestTerminalLabs does the same for commands that start a lab. TestStepCommand has step without a terminal.
func TestTerminalLabs(t *testing.T) {
	t.Parallel()
	widths := []int{80}
	if rigtest.IsNightly() {
		widths = []int{80, 200}
	}
	for _, width := range widths {
		t.Run(fmt.Sprintf("break-%d", width), func(t *testing.T) {
			s := startTmux(t, width, built()+" break race none mutex")
			s.await("\nexit 0")
			s.checkWrapping()
			// The log has a line for a quiet time, and for a wait that was long enough to see.
			timed := regexp.MustCompile(`(?m)^ +(#  )?(\S+: asks for the lock|⋯ # s)\n|^ +#  |^ {10}`)
			checkScreen(t, fmt.Sprintf("break-%d", width), timed.ReplaceAllString(placeholders(s.screen()), ""))
		})
		if !rigtest.IsNightly() {
			continue
		}
		t.Run(fmt.Sprintf("step-%d", width), func(t *testing.T) {
			s := startTmux(t, width, built()+" step none")
			s.await("q: quit")
			s.tell("send-keys", "abaaabbb")
			s.await("an update was lost")
			s.checkWrapping()
			checkScreen(t, fmt.Sprintf("step-%d", width), s.visible())
			s.tell("send-keys", "q")
			s.await("\nexit 0")
		})
	}
}

// TestCleanText checks that pipes and dumb terminals get no escape sequences, and that NO_COLOR
// turns colours off.
func TestCleanText(t *testing.T) {
	binary := built()
	run := binary + " run none --clients 2 --loops 5 --stock 100 --target " + testLab.Addresses().Target
	color := regexp.MustCompile("\x1b\\[[0-9;]*[1-9][0-9;]*m")
	for name, c := range map[string]struct {
		command, variable string
		colors, bar       bool
	}{
		"terminal": {run, "", true, true},
		"NO_COLOR": {run, "NO_COLOR=1", false, true},
		"dumb":     {"TERM=dumb " + run, "", false, false},
		"pipe":     {run + " 2>&1 | cat", "", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := startTmux(t, 80, c.command, cmp.Or(c.variable, "NO_COLOR="))
			s.await("\nexit 0")
			s.checkWrapping()
			// tmux starts the process that writes the file.
			rigtest.Eventually(t, "the output is recorded", func() (bool, string) {
				text, err := os.ReadFile(s.raw)
				return strings.Contains(string(text), "\nexit 0"), fmt.Sprint(string(text), err)
			})
			text := read(t, s.raw)
			if got := color.MatchString(text); got != c.colors {
				t.Errorf("colours: %v, want %v: %q", got, c.colors, text)
			}
			if got := strings.Contains(text, "none (1/1)  █") || strings.Contains(text, "none (1/1)  ░"); got != c.bar {
				t.Errorf("a bar: %v, want %v: %q", got, c.bar, text)
			}
			if !c.colors && strings.Contains(text, "\x1b") {
				t.Errorf("an escape sequence: %q", text)
			}
		})
	}
}

// TestInterruptedInTerminal checks that Ctrl-C leaves no bar, and is not called a failure.
func TestInterruptedInTerminal(t *testing.T) {
	target, waiting := endless(t)
	s := startTmux(t, 80, built()+" run redis --clients 3 --loops 10 --target "+target)
	rigtest.Eventually(t, "three requests wait", func() (bool, string) { return waiting.Load() == 3, s.screen() })
	s.tell("send-keys", "C-c")
	s.await("\nexit 130")
	screen := s.screen()
	if strings.Contains(screen, "fail!") || strings.ContainsAny(screen, "█░") || !strings.Contains(screen, "? redis  inconclusive: ") || !strings.Contains(screen, "stopped") {
		t.Error(screen)
	}
	s.checkWrapping()
}
