package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/caarlos0/env/v11"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// readEnvironment sets the settings from the environment. Each variable may also be given as a file:
// MYSQL_DSN_FILE names a file with the value of MYSQL_DSN. Container platforms provide secrets so.
func (s *settings) readEnvironment() error { return readVariables(s, env.ToMap(os.Environ())) }

func readVariables(into any, all map[string]string) error {
	params, err := env.GetFieldParams(into)
	if err != nil {
		return err
	}
	for _, p := range params {
		file := p.Key + "_FILE"
		if p.Key == "" || all[file] == "" {
			continue
		}
		if all[p.Key] != "" {
			return fmt.Errorf("%s and %s are both set: unset one of them", p.Key, file)
		}
		if all[p.Key], err = secretFile(file, all[file]); err != nil {
			return err
		}
	}
	return env.ParseWithOptions(into, env.Options{Environment: all})
}

// addToken adds the flag --token for the lab's token. Its default is LAB_TOKEN, or the text of the file
// that LAB_TOKEN_FILE names. The help shows neither.
func addToken(flags *pflag.FlagSet, token *string, usage string) {
	value, _ := labToken() // checkToken returns the error when the command runs
	flags.StringVar(token, "token", value, usage)
	flags.Lookup("token").DefValue = ""
}

// checkToken returns an error if a command needs the lab's token and LAB_TOKEN_FILE is wrong.
func checkToken(cmd *cobra.Command) error {
	flag := cmd.Flags().Lookup("token")
	if flag == nil || flag.Changed {
		return nil
	}
	if _, err := labToken(); err != nil {
		return usage("environment: %w", err)
	}
	return nil
}

func labToken() (string, error) {
	var only struct {
		Token string `env:"LAB_TOKEN"`
	}
	err := readVariables(&only, env.ToMap(os.Environ()))
	return only.Token, err
}

// secretFile returns the text of a file, without the line's end that editors add. No error shows a
// part of the text: the error of a wrong path would be the place where a secret gets into a log.
func secretFile(variable, path string) (string, error) {
	const longest = 1 << 20
	if strings.ContainsAny(path, "\r\n") {
		return "", fmt.Errorf("%s has several lines: it must be the path of a file, not the text itself", variable)
	}
	file, err := os.Open(path) //nolint:gosec // the user's own
	if err != nil {
		return "", fmt.Errorf("%s: cannot read the file: %w", variable, err)
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, longest+1))
	if err != nil {
		return "", fmt.Errorf("%s: cannot read the file: %w", variable, err)
	}
	value := strings.TrimRight(strings.TrimPrefix(string(text), "\uFEFF"), "\r\n") // a mark that editors write
	switch {
	case strings.HasPrefix(value, "\xFF\xFE"), strings.HasPrefix(value, "\xFE\xFF"):
		return "", fmt.Errorf("%s: the file %s is in UTF-16: save it as UTF-8", variable, path)
	case len(text) > longest:
		return "", fmt.Errorf("%s: the file %s is longer than 1 MB: it is not a setting", variable, path)
	case value == "":
		return "", fmt.Errorf("%s: the file %s is empty", variable, path)
	}
	return value, nil
}

// defaults returns the settings without flags and environment variables.
func defaults() (unset settings) {
	_ = readVariables(&unset, map[string]string{}) // the defaults are valid
	return unset
}

// withSettings completes a command that runs with settings: of the environment, and of the flags that define adds. The
// help shows the defaults of the flags, because their values may be secrets.
func withSettings(c *cobra.Command, define func(*settings, *pflag.FlagSet), run func(*cobra.Command, *settings) error) *cobra.Command {
	s, unset := settings{}, defaults()
	parsed := s.readEnvironment()
	c.Args = noArgs
	c.RunE = func(c *cobra.Command, _ []string) error {
		if parsed != nil {
			return usage("environment: %w", parsed)
		}
		return run(c, &s)
	}
	define(&s, c.Flags())
	plain := pflag.NewFlagSet("", pflag.ContinueOnError)
	define(&unset, plain)
	plain.VisitAll(func(f *pflag.Flag) { c.Flags().Lookup(f.Name).DefValue = f.DefValue })
	return c
}

// sendable returns an error for a token that browsers refuse to send in a header.
func sendable(token string) error {
	if strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return errors.New("the token must have only English letters, digits and signs, without blanks: browsers send no other in a header")
	}
	return nil
}
