package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/caarlos0/env/v11"
	"github.com/spf13/pflag"
)

// readEnvironment sets the settings from the environment. Each variable may also be given as a file:
// MYSQL_DSN_FILE names a file with the value of MYSQL_DSN. Container platforms provide secrets so.
func (s *settings) readEnvironment() error { return s.readVariables(env.ToMap(os.Environ())) }

func (s *settings) readVariables(all map[string]string) error {
	params, err := env.GetFieldParams(s)
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
	return env.ParseWithOptions(s, env.Options{Environment: all})
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
	value := strings.TrimRight(string(text), "\r\n")
	switch {
	case len(text) > longest:
		return "", fmt.Errorf("%s: the file %s is longer than 1 MB: it is not a setting", variable, path)
	case value == "":
		return "", fmt.Errorf("%s: the file %s is empty", variable, path)
	}
	return value, nil
}

// withoutValues makes the help show the defaults of flags. Their values may be secrets from the
// environment. define adds the flags of the settings that it gets.
func withoutValues(flags *pflag.FlagSet, define func(*settings, *pflag.FlagSet)) {
	var unset settings
	_ = unset.readVariables(map[string]string{}) // the defaults are valid
	plain := pflag.NewFlagSet("", pflag.ContinueOnError)
	define(&unset, plain)
	plain.VisitAll(func(f *pflag.Flag) { flags.Lookup(f.Name).DefValue = f.DefValue })
}
