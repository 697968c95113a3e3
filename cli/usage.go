package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"oversell/lab/suggest"
	"oversell/trial/process"
)

func usage(format string, args ...any) error { return &exit{2, fmt.Errorf(format, args...)} }

// forUsers completes a command and its subcommands: their errors have the command's name, Ctrl-C has the status
// 130, and the texts call the program as the user did, for example bin/oversell.
func forUsers(cmd *cobra.Command, program string) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error { return named(cmd, check(cmd, args)) }
	}
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			err := checkToken(cmd)
			if err == nil {
				err = ended(cmd.Context(), run(cmd, args))
			}
			return named(cmd, err)
		}
	}
	for _, text := range []*string{&cmd.Short, &cmd.Long, &cmd.Example} {
		*text = asTyped(*text, program)
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = asTyped(f.Usage, program) })
	for _, sub := range cmd.Commands() {
		forUsers(sub, program)
	}
}

// checked returns what a command does that may write reports: it checks the command line, whose errors have the status
// 2, and the files, before it runs.
func checked(
	files *files, check func(cmd *cobra.Command, args []string) error, run func(ctx context.Context, out, errOut io.Writer) error,
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return &exit{2, err}
		}
		if err := files.check(); err != nil {
			return err
		}
		return run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
}

// asTyped replaces the program's name before a subcommand.
func asTyped(text, program string) string {
	if !strings.Contains(text, "oversell ") {
		return text // most texts: compiling the expression takes longer than all else at the start
	}
	return regexp.MustCompile("(^|[\\s\"(`])oversell( [a-z])").ReplaceAllString(text, "${1}"+strings.ReplaceAll(program, "$", "$$")+"${2}")
}

// noArgs returns an error that cobra.NoArgs would call an unknown command.
func noArgs(cmd *cobra.Command, args []string) error { return between(0, 0)(cmd, args) }

// between allows a number of arguments. The command's line of usage names them.
func between(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) > most:
			return usage("unexpected argument %q. Usage: %s", args[most], cmd.UseLine())
		case len(args) < least:
			return usage("an argument is missing. Usage: %s", cmd.UseLine())
		}
		return nil
	}
}

// oneStrategy allows one argument, the name of a strategy.
func oneStrategy(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usage("name one strategy. List them: %s strategies", cmd.Root().CommandPath())
	}
	return nil
}

// knownCommand returns an error for any argument: the root command only has subcommands.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return usage("command %q does not exist%s List them: %s --help", args[0], didYouMean(args[0], names, ""), cmd.CommandPath())
}

// didYouMean ends a sentence, with the nearest name if there is one.
func didYouMean(wanted string, names []string, prefix string) string {
	if nearest := suggest.Nearest(wanted, names); nearest != "" {
		return "; did you mean " + prefix + nearest + "?"
	}
	return "."
}

// flagError says what is wrong with a flag.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var without *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		return fmt.Errorf("flag -%s does not exist. List them: %s --help", unknown.GetSpecifiedName(), cmd.CommandPath())
	case errors.As(err, &unknown):
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		name := unknown.GetSpecifiedName()
		return fmt.Errorf("flag --%s does not exist%s List them: %s --help", name, didYouMean(name, names, "--"), cmd.CommandPath())
	case errors.As(err, &without):
		return fmt.Errorf("--%s needs a value", without.GetFlag().Name)
	case errors.As(err, &invalid):
		return valueError(invalid)
	}
	return err
}

func valueError(invalid *pflag.InvalidValueError) error {
	var mustBe string
	flag := invalid.GetFlag()
	switch kind := flag.Value.Type(); {
	case errors.Is(invalid.Unwrap(), strconv.ErrRange):
		mustBe = "a smaller number"
	case strings.HasPrefix(kind, "int"):
		mustBe = "a whole number"
	case kind == "duration":
		mustBe = "a time with its unit, such as 500ms, 10s or 2m"
	case kind == "bool":
		mustBe = "true or false"
	default:
		return invalid.Unwrap() // flags with a format of their own explain it
	}
	return fmt.Errorf("--%s %q: must be %s", flag.Name, invalid.GetValue(), mustBe)
}

// helpCommand replaces cobra's, which ends with status 0 if the command does not exist.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Print the help of a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || about == cmd.Root() && len(rest) > 0 {
				return knownCommand(cmd.Root(), args)
			}
			return about.Help()
		},
	}
}

// commandLine returns the command that runs, with its arguments and the flags that were set.
func commandLine(cmd *cobra.Command, args []string) string {
	words := append([]string{cmd.CommandPath()}, args...)
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Value.Type() == "bool" {
			words = append(words, "--"+f.Name+map[bool]string{false: "=" + f.Value.String()}[f.Value.String() == "true"])
			return
		}
		words = append(words, "--"+f.Name, process.Quoted(strings.Trim(f.Value.String(), "[]")))
	})
	return strings.Join(words, " ")
}
