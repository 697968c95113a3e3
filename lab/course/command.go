package course

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mattn/go-shellwords"

	"oversell/lab/load"
)

// Command is a line of a lesson's block of commands: bin/oversell, curl, sleep or wait.
type Command struct {
	Text string // the line, without its comment
	// Args are the arguments of oversell.
	Args       []string
	Method     string // of the request that curl sends
	URL        *url.URL
	times      int  // the number of requests, for the numbers of a range such as [1-10] in the address
	parallel   bool // the requests are sent at the same time
	background bool
	pause      time.Duration
	wait       bool
}

// parseCommands reads a block of commands.
func parseCommands(block string) (all []Command, err error) {
	for line := range strings.Lines(block) {
		c, err := ParseCommand(strings.TrimSpace(line))
		if err != nil {
			return nil, err
		}
		if c.Text != "" {
			all = append(all, c)
		}
	}
	return all, nil
}

// ParseCommand reads a line of a block of commands. A line without a command gives a Command without a Text.
func ParseCommand(line string) (Command, error) {
	words, err := shellwords.Parse(strings.TrimSuffix(line, "&"))
	if err != nil {
		return Command{}, fmt.Errorf("%q: %w", line, err)
	}
	if i := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, "#") }); i >= 0 {
		words = words[:i]
	}
	if len(words) == 0 {
		return Command{}, nil
	}
	c := Command{Text: strings.TrimSpace(strings.SplitN(line, " # ", 2)[0]), background: strings.HasSuffix(line, "&")}
	switch words[0] {
	case "bin/oversell":
		c.Args = words[1:]
	case "curl":
		err = c.parseRequest(words[1:])
	case "sleep":
		var seconds float64
		if len(words) == 2 {
			seconds, err = strconv.ParseFloat(words[1], 64)
		}
		c.pause = time.Duration(seconds * float64(time.Second))
	case "wait":
		c.wait = true
	default:
		err = errors.New("a lesson may only use bin/oversell, curl, sleep and wait")
	}
	if err != nil {
		return c, fmt.Errorf("%q: %w", line, err)
	}
	return c, nil
}

func (c *Command) parseRequest(words []string) (err error) {
	c.Method = http.MethodGet
	for i := 0; i < len(words); i++ {
		switch word := words[i]; {
		case word == "-s", word == "--parallel-immediate", word == "--no-progress-meter":
		case word == "-Z":
			c.parallel = true
		case word == "-w" && i+1 < len(words):
			i++ // the answers get lines of their own in any case
		case word == "-X" && i+1 < len(words):
			i++
			c.Method = words[i]
		case strings.HasPrefix(word, "http://127.0.0.1:8080/"):
			if c.URL, err = url.Parse(word); err != nil {
				return err
			}
		default:
			return fmt.Errorf("curl: %q is not supported here", word)
		}
	}
	if c.URL == nil {
		return errors.New("curl: the address of the lab is missing: http://127.0.0.1:8080/")
	}
	c.times = 1
	if found := numbers.FindStringSubmatch(c.URL.RawQuery); found != nil {
		c.times, err = strconv.Atoi(found[1])
	}
	return err
}

// numbers is a range in an address, for which curl sends a request with each number.
var numbers = regexp.MustCompile(`\[1-(\d+)\]`)

// Runner runs the commands of lessons.
type Runner struct {
	Program  string   // the program oversell
	Target   string   // the lab that receives the requests
	Replicas []string // the addresses of the lab's replicas, if known
	Token    string
	Lang     string // of what the commands print: en or zh
	Quick    bool   // with a small load
	// Output receives what the commands print. Progress receives their progress.
	Output, Progress io.Writer
	Begin            func(Command) // is called before each command; may be nil
}

// Run runs the commands in their order. Their results are in the returned Results, also after an
// error.
func (r Runner) Run(ctx context.Context, commands []Command) (*Results, error) {
	results := NewResults()
	text := &bytes.Buffer{}
	var mu sync.Mutex
	r.Output, r.Progress = lockedWriter{&mu, io.MultiWriter(r.Output, text)}, lockedWriter{&mu, r.Progress}
	recorded := r.record(ctx, commands, results)
	var requests sync.WaitGroup
	var err error
	for _, c := range commands {
		if r.Begin != nil {
			r.Begin(c)
		}
		switch {
		case c.pause > 0:
			err = load.Sleep(ctx, c.pause)
		case c.wait:
			requests.Wait()
		case c.URL != nil:
			all := results.next(c)
			if c.background {
				requests.Go(func() { r.requests(ctx, c, all) })
			} else {
				r.requests(ctx, c, all)
			}
		default:
			err = r.oversell(ctx, c, results)
		}
		if err != nil {
			break
		}
	}
	requests.Wait()
	recorded()
	results.text = text.String()
	return results, err
}

// oversell runs the program. The report of run in JSON goes to stdout, and the text for people to stderr. The
// results of break are in a folder.
func (r Runner) oversell(ctx context.Context, c Command, results *Results) error {
	args := r.adapt(c.Args)
	folder := ""
	if c.Args[0] == "break" {
		var err error
		if folder, err = os.MkdirTemp("", "oversell-lesson-"); err != nil {
			return fmt.Errorf("%s: %w", c.Text, err)
		}
		defer func() { _ = os.RemoveAll(folder) }()
		args = append(args, "--keep", folder)
	}
	cmd := r.process(ctx, args...)
	var report bytes.Buffer
	cmd.Stdout, cmd.Stderr = r.Output, r.Progress
	switch c.Args[0] {
	case "run":
		cmd.Stdout, cmd.Stderr = &report, r.Output
	case "break":
		cmd.Stderr = r.Output
	}
	err := cmd.Run()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	before := len(results.Verdicts)
	switch { // also with exit status 1: a broken lock may be the lesson
	case report.Len() > 0:
		return results.addRuns(report.Bytes())
	case folder != "":
		if failed := results.addExperiments(folder); failed != nil || len(results.Verdicts) > before {
			return failed
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.Text, err)
	}
	return nil
}

// process returns a process of the program oversell. It is a process of its own, because the commands are in
// a package that course may not import. When ctx ends, it receives the signal of Ctrl-C, so that it stops its
// servers. After 30 seconds it is killed.
func (r Runner) process(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, r.Program, args...) //nolint:gosec // this program, with arguments of a lesson or a teacher
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 30 * time.Second
	language := map[string]string{"zh": "zh_CN.UTF-8"}[r.Lang]
	cmd.Env = append(os.Environ(), "LAB_TOKEN="+r.Token, "COLUMNS=100", "LC_ALL="+cmp.Or(language, "C.UTF-8"))
	return cmd
}

// adapt returns the arguments for this lab: where to send the load, and a report in JSON.
func (r Runner) adapt(args []string) []string {
	args = slices.Clone(args)
	if len(args) == 0 || args[0] != "run" {
		return args
	}
	args = append(args, "--json", "-", "--quiet")
	if isScenario(args) {
		return args
	}
	if r.Quick {
		args = append(args, "--clients", "20", "--loops", "5")
	}
	changed := slices.ContainsFunc(args, func(arg string) bool { return ownLab(arg) && arg != "--replicas" })
	if i := slices.Index(args, "--replicas"); i > 0 && args[i+1] == "1" && len(r.Replicas) > 0 && !changed {
		return append(slices.Delete(args, i, i+2), "--target", r.Replicas[0])
	}
	if r.Target != "" && !slices.ContainsFunc(args, ownLab) {
		args = append(args, "--target", r.Target)
	}
	return args
}

func isScenario(args []string) bool {
	return len(args) > 1 && slices.Contains([]string{"coupon", "tickets", "flash", "recharge", "grain"}, args[1])
}

// ownLab reports whether an argument of run needs a lab of its own.
func ownLab(arg string) bool {
	return slices.Contains([]string{"--replicas", "--delay", "--fsync", "--disk"}, arg)
}

// NeedsServers reports whether the command starts a lab of its own, for which this machine needs
// the servers. Under Docker, the page's container has none.
func (c Command) NeedsServers() bool {
	if len(c.Args) == 0 || slices.Contains([]string{"strategies"}, c.Args[0]) {
		return false
	}
	return c.Args[0] != "run" || isScenario(c.Args) || slices.ContainsFunc(c.Args, ownLab) && !slices.Contains(c.Args, "--replicas")
}

// lockedWriter lets several commands print at the same time.
type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
