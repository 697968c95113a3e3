package cli

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"regexp"
	"strings"
	"text/template"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"oversell/view/terminal"
)

// Help has 80 columns in a pipe, and never more than 100, because longer lines are hard to read.
const (
	helpWidth  = 80
	widestHelp = 100
	narrowHelp = 40
)

// helpScreen returns the screen to which help is fitted.
func helpScreen(out io.Writer) terminal.Screen {
	screen := terminal.Of(out)
	if screen.Width <= 0 {
		screen.Width = helpWidth
	}
	screen.Width = min(widestHelp, max(narrowHelp, screen.Width))
	return screen
}

// writeHelp writes what the command does, and its usage.
func writeHelp(cmd *cobra.Command, _ []string) {
	out := cmd.OutOrStdout()
	_, _ = fmt.Fprintln(out, fold(cmp.Or(cmd.Long, cmd.Short), helpScreen(out)))
	_, _ = fmt.Fprintln(out)
	_ = writeUsage(cmd)
}

//go:embed usage.tmpl
var usageText string

// writeUsage replaces cobra's template, which does not wrap lines.
func writeUsage(cmd *cobra.Command) error {
	out := cmd.OutOrStdout()
	screen := helpScreen(out)
	functions := template.FuncMap{
		"wrap": screen.Wrap,
		"commands": func(examples string) string {
			var lines []string
			for line := range strings.SplitSeq(examples, "\n") {
				lines = append(lines, commandLines(line, screen.Width))
			}
			return strings.Join(lines, "\n")
		},
		"flags": func(set *pflag.FlagSet) string { return strings.TrimRight(set.FlagUsagesWrapped(screen.Width), " \n") },
	}
	return template.Must(template.New("").Funcs(functions).Parse(usageText)).Execute(out, cmd)
}

// tabled matches the beginning of an indented line up to its explanation, as in "  0    success".
var tabled = regexp.MustCompile(`^ +(\S+ {2,})?`)

// fold wraps the paragraphs of a text. A line that is indented begins a paragraph of its own, unless
// it continues the explanation in the line above. A line that begins with a tab is a command.
func fold(text string, screen terminal.Screen) string {
	var all []string
	paragraph, indent := "", 0
	end := func() {
		if paragraph != "" {
			all = append(all, screen.Wrap(paragraph, indent))
		}
		paragraph = ""
	}
	for line := range strings.Lines(strings.TrimSpace(text) + "\n") {
		line = strings.TrimRight(line, " \n")
		begin := tabled.FindString(line)
		margin := len(line) - len(strings.TrimLeft(line, " "))
		switch continues := paragraph != "" && margin == indent; {
		case line == "":
			end()
			all = append(all, "")
		case strings.HasPrefix(line, "\t"):
			end()
			all = append(all, commandLines("  "+strings.TrimLeft(line, "\t"), screen.Width))
		case continues:
			paragraph += " " + strings.TrimLeft(line, " ")
		default:
			end()
			paragraph, indent = line, len(begin)
		}
	}
	end()
	return strings.Join(all, "\n")
}

// commandLines divides a long command as a shell allows it, so that it can still be copied.
func commandLines(command string, width int) string {
	const more = " \\"
	if len(command) <= width {
		return command
	}
	at := strings.LastIndex(command[:width-len(more)+1], " ")
	if at < 0 || strings.TrimSpace(command[:at]) == "" || strings.Count(command[:at], "'")%2 == 1 {
		return command
	}
	return command[:at] + more + "\n" + commandLines("    "+command[at+1:], width)
}
