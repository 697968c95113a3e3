package cli

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// execute runs a command line in this process, as Main does.
func execute(t *testing.T, args ...string) (status int, out, message string) {
	t.Helper()
	root := rootCommand("bin/oversell")
	root.SetArgs(append([]string{}, args...)) // not nil: cobra would take the arguments of the test itself
	var text, errText bytes.Buffer
	root.SetOut(&text)
	root.SetErr(io.Discard)
	status = printError(&errText, "bin/oversell", root.ExecuteContext(t.Context()))
	return status, text.String(), errText.String()
}

// TestWrongUsage checks that a wrong command line ends with status 2, and says what was meant.
func TestWrongUsage(t *testing.T) {
	for args, want := range map[string]string{
		"rum":                  `command "rum" does not exist; did you mean run? List them: bin/oversell --help`,
		"help rum":             `command "rum" does not exist; did you mean run?`,
		"completion powershel": `command "powershel" does not exist; did you mean powershell? List them: bin/oversell completion --help`,
		"completion bash x":    `completion: unexpected argument "x"`,
		"run rediss":           `run: strategy "rediss" does not exist; did you mean "redis"? List them: bin/oversell strategies`,
		"run coupn":            `run: strategy "coupn" does not exist; did you mean "coupon"?`,
		"run redis coupon":     "run: coupon is a scenario, not a strategy",
		"run redis --jmeter --sweep clients=1..2": "run: --jmeter cannot be used with --sweep",
		"compare redis":                          "compare: an argument is missing",
		"compare redis rediss":                   `compare: strategy "rediss" does not exist; did you mean "redis"?`,
		"compare redis old.json":                 "compare: a file is compared with another file only",
		"compare http://127.0.0.1:1 redis":       "sells with many strategies: name one with --strategy",
		"compare ./none redis --strategy redis":  "./none is no program of oversell",
		"compare redis?hold=soon redis":          "hold: must be a duration such as 1ms",
		"compare redis?held=1ms redis":           "held is no parameter: use hold, outside, pause or lease",
		"compare redis zk --rounds 3":            "--rounds 3: must be 6 to 1000",
		"compare redis zk --within 0":            "--within 0: must be 0.1% to 100%",
		"compare redis zk --length 1ms":          "--length 1ms: must be 100ms to 1m",
		"lab --ports free":                       `lab: --ports "free": must be fixed`,
		"lab --login student:with:colon":         `must be USER:PASSWORD, of English letters`,
		"settings sprin":                         `settings: part "sprin" does not exist; did you mean "spring"?`,
		"run --clints 5":                         "run: flag --clints does not exist; did you mean --clients? List them: bin/oversell run --help",
		"run -x":                                 "run: flag -x does not exist. List them: bin/oversell run --help",
		"run --clients":                          "run: --clients needs a value",
		"run --clients ten":                      `run: --clients "ten": must be a whole number`,
		"run --clients 99999999999999999999":     `run: --clients "99999999999999999999": must be a smaller number`,
		"run --wait 5":                           `run: --wait "5": must be a time with its unit, such as 500ms, 10s or 2m`,
		"run --all=perhaps":                      `run: --all "perhaps": must be true or false`,
		"run --rate 0":                           `run: rate "0": must be a number per second or minute`,
		"run coupon redis":                       `run: unexpected argument "redis". Usage: bin/oversell run coupon [flags]`,
		"run coupon --guard unqiue":              `run: coupon: guard "unqiue" does not exist; did you mean "unique"?`,
		"run coupon --replicas http://a":         "run: --replicas is only for the lab at --target",
		"run coupon --target ftp://a":            `target "ftp://a": must be a URL`,
		"run coupon --target http://127.0.0.1:1": "run: coupon pauses requests in 3 replicas: name them with --replicas",
		"run tickets --target http://127.0.0.1:1 --replicas http://a,http://b": "run: tickets needs 5 replicas, and the lab at --target has 2; it cannot start more",
		"run --clients 0":                   "clients 0: must be",
		"run --loops -1":                    "loops -1: must be",
		"run --stock -5":                    "stock -5: must be",
		"run --stock 1000001":               "stock 1000001: must be",
		"run --clients 10000 --loops 10000": "more than 1000000 requests",
		"run --wait -1s":                    "wait -1s: must be",
		"run --hold 10h":                    "hold 10h0m0s: must be",
		"run --ramp-up -1ns":                "ramp-up -1ns: must",
		"run --wait soon":                   `run: --wait "soon": must be a time with its unit`,
		"run redis redlok":                  `"redlok" does not exist; did you mean "redlock"?`,
		"run prayer":                        `"prayer" does not exist; choose one of none, mutex`,
		"run --replicas 0":                  "replicas 0: must be",
		"run --replicas 2 --target http://127.0.0.1:1": "has its replicas already",
		"run --delay 1ms --target http://127.0.0.1:1":  "not for the lab at --target",
		"run --fsync --target http://127.0.0.1:1":      "--delay, --fsync and --disk are only for a lab",
		"run --disk 2s":        "disk 2s: must be 1us to 1s",
		"run --delay 0":        "delay 0s: must be whole milliseconds",
		"run --delay 1500us":   "delay 1.5ms: must be whole milliseconds",
		"run --delay 2s":       "delay 2s: must be whole milliseconds",
		"run --target ftp://x": `target "ftp://x": must be a URL`,
		"run --rolling-restart --target http://127.0.0.1:1": "--rolling-restart needs a lab that this command",
		"run --rolling-restart --replicas 1":                "--rolling-restart needs --replicas 2",
		"run --json x --html ./x":                           "--json and --html name the same file, ",
		"run --rate -5/s":                                   `run: rate "-5/s": must be`,
		"run --rate abc":                                    `run: rate "abc": must be`,
		"run --rate 2000":                                   `such as 2000/s or 90/m, from`,
		"run --rate 5/s --ramp-up 1s":                       "ramp-up 1s: cannot be used with a rate",
		"run --qty 0":                                       "qty 0: must be",
		"run --qty 101":                                     "qty 101: must be",
		"run redis --sweep 5":                               `run: sweep "5": must be`,
		"run redis --sweep clients=0..5":                    `sweep "clients=0..5": must be a range`,
		"run redis --sweep clients=9..5":                    `sweep "clients=9..5": must be a range`,
		"run redis --sweep clients=1..10001":                `sweep "clients=1..10001": must be`,
		"run --sweep clients=1..5":                          "run: --sweep takes a minute for each",
		"run redis --sweep clients=1..5 --rate 5/s":         "run: --rate cannot be used with --sweep",
		"run redis --sweep clients=1..5 --clients 5":        "run: --clients cannot be used with --sweep",
		"run redis --sweep clients=1..5 --csv x":            "run: --csv cannot be used with --sweep",
		"break":                                             "break: name a hazard",
		"break puase":                                       `break: hazard "puase" does not exist; did you mean "pause"?`,
		"break pause,puase redis":                           `break: hazard "puase" does not exist; did you mean "pause"?`,
		"break pause redlok":                                `break: strategy "redlok" does not exist; did you mean "redlock"? List them: bin/oversell strategies`,
		"break herd none":                                   "break: hazard herd does not apply to strategy none",
		"break --all none --fenced":                         "break: no hazard applies to strategy none with --fenced, which needs a strategy with a fencing token",
		"-x":                                                "oversell: flag -x does not exist. List them: bin/oversell --help",
		"--vresion":                                         "oversell: flag --vresion does not exist; did you mean --version?",
		"exercise isolaton":                                 `exercise "isolaton" does not exist; did you mean "isolation"?`,
		"exercise a b":                                      `exercise: unexpected argument "b". Usage: bin/oversell exercise [NAME] [flags]`,
		"step":                                              "step: name one strategy. List them: bin/oversell strategies",
		"step none mutex":                                   "step: name one strategy",
		"step none --pace slow":                             `step: --pace "slow": must be a time with its unit`,
		"step rediss":                                       `step: strategy "rediss" does not exist; did you mean "redis"?`,
		"strategies rediss":                                 `strategies: strategy "rediss" does not exist; did you mean "redis"?`,
		"strategies a b":                                    `strategies: unexpected argument "b". Usage: bin/oversell strategies [strategy] [flags]`,
		"lab x":                                             `lab: unexpected argument "x"`,
		"dash x":                                            `dash: unexpected argument "x"`,
		"serve x":                                           `serve: unexpected argument "x"`,
		"migrate x":                                         `migrate: unexpected argument "x"`,
		"probe":                                             "probe: an argument is missing",
		"reap":                                              "reap: an argument is missing",
		"site":                                              "site: an argument is missing. Usage: bin/oversell site FOLDER [flags]",
		"mysql --lab":                                       "mysql: --lab: name the file",
		// No lab may start for an invalid number.
		"break pause redis --seeds 0":   "break: --seeds 0: must be 1 or more",
		"break --all --seeds -3":        "break: --seeds -3: must be 1 or more",
		"break pause redis --seeds 1.5": `break: --seeds "1.5": must be a whole number`,
		"step none --pace -1s":          "step: --pace -1s: must not be negative",
		"step none --lease 0s":          "step: --lease 0s: must be 100ms or more",
		"lab --replicas 0":              "lab: --replicas 0: must be 1 to 50",
		"lab --replicas 51":             "lab: --replicas 51: must be 1 to 50",
		"lab --replicas many":           `lab: --replicas "many": must be a whole number`,
		"lab --port 65536":              "lab: --port 65536: must be 1 to 65535",
		"lab --port -1":                 "lab: --port -1: must be 1 to 65535",
		"run coupon --runs 0":           "run: runs 0: must be 1 or more",
	} {
		status, out, message := execute(t, strings.Fields(args)...)
		if status != 2 || out != "" || !strings.HasPrefix(message, "oversell: ") || strings.HasPrefix(message, "oversell: oversell") || !strings.Contains(message, want) || strings.Count(message, "\n") != 1 {
			t.Errorf("%s: status %d, %s want %s", args, status, message, want)
		}
	}
}

// TestHintsAreAsTyped checks that the help names the program as the user did.
func TestHintsAreAsTyped(t *testing.T) {
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, text := range []string{cmd.Short, cmd.Long, cmd.Example, cmd.LocalFlags().FlagUsages()} {
			if strings.Contains(strings.ReplaceAll(text, "bin/oversell", ""), "oversell ") {
				t.Errorf("%s: another name of the program in:\n%s", cmd.CommandPath(), text)
			}
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(rootCommand("bin/oversell"))
	if status, out, _ := execute(t, "run", "--help"); status != 0 || !strings.Contains(out, "  bin/oversell run none redis --clients 50") || !strings.Contains(out, "\n  bin/oversell run [strategy...] [flags]") {
		t.Errorf("status %d, %s", status, out)
	}
	if status, out, _ := execute(t); status != 0 || !strings.Contains(out, "  completion ") {
		t.Errorf("status %d, completion is not listed: %s", status, out)
	}
}

func TestCompletion(t *testing.T) {
	for args, want := range map[string]string{
		"run ":                "redis\t",
		"run redis ":          "mutex\t",
		"break ":              "pause\t",
		"break pause ":        "redis\t",
		"break --all ":        "redis\t",
		"step ":               "redis\t",
		"strategies ":         "redis\t",
		"exercise ":           "isolation\t",
		"run coupon --guard ": "redis-early\n",
	} {
		status, out, _ := execute(t, append([]string{"__complete"}, strings.Split(args, " ")...)...)
		if status != 0 || !strings.Contains("\n"+out, "\n"+want) {
			t.Errorf("%q: status %d, no %q in\n%s", args, status, want, out)
		}
	}
	for _, args := range []string{"step redis ", "run redis "} {
		if _, out, _ := execute(t, append([]string{"__complete"}, strings.Split(args, " ")...)...); strings.Contains("\n"+out, "\nredis\t") {
			t.Errorf("%q offers redis again:\n%s", args, out)
		}
	}
}

func TestCommandLine(t *testing.T) {
	root := rootCommand("bin/oversell")
	cmd, _, err := root.Find([]string{"break"})
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.ParseFlags([]string{"--all", "--seeds", "2", "--html", "my page.html", "redis"}); err != nil {
		t.Fatal(err)
	}
	if got, want := commandLine(cmd, cmd.Flags().Args()), "bin/oversell break redis --all --html 'my page.html' --seeds 2"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestAsTyped checks that only commands are changed, and not the name of the database or the program
// in another command.
func TestAsTyped(t *testing.T) {
	for text, want := range map[string]string{
		"  oversell run\n  echo ab | oversell step none": "  bin/oversell run\n  echo ab | bin/oversell step none",
		"mysql      u:p@tcp(127.0.0.1:3306)/oversell\n":  "mysql      u:p@tcp(127.0.0.1:3306)/oversell\n",
		"see which of them oversell.":                    "see which of them oversell.",
		"LAB_TOKEN=x oversell run --target URL":          "LAB_TOKEN=x bin/oversell run --target URL",
		`with "oversell lab"`:                            `with "bin/oversell lab"`,
	} {
		if got := asTyped(text, "bin/oversell"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestHelpFits checks that the help of each command, also of a hidden one, fits its screen.
func TestHelpFits(t *testing.T) {
	for columns, width := range map[string]int{"": 80, "80": 80, "100": 100, "200": 100} {
		t.Setenv("COLUMNS", columns)
		var visit func(cmd *cobra.Command)
		visit = func(cmd *cobra.Command) {
			args := append(strings.Fields(cmd.CommandPath())[1:], "--help")
			status, out, _ := execute(t, args...)
			if status != 0 || !strings.Contains(out, "Usage:\n") {
				t.Errorf("%v: status %d, %s", args, status, out)
			}
			for line := range strings.Lines(out) {
				line = strings.TrimRight(line, "\n")
				if wide := utf8.RuneCountInString(line); wide > width {
					t.Errorf("%v: %d of %d columns: %s", args, wide, width, line)
				}
			}
			for _, sub := range cmd.Commands() {
				visit(sub)
			}
		}
		visit(rootCommand("bin/oversell"))
	}
}
