package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/pflag"

	"oversell/view/report"
)

const toStdout = "-"

// files are the reports that a command writes.
type files struct {
	flags []*pflag.Flag
}

// add adds a flag whose value is a file name. If the user gives no name, no file is written.
func (f *files) add(flags *pflag.FlagSet, name, usage string) {
	flags.String(name, "", usage)
	f.flags = append(f.flags, flags.Lookup(name))
}

// wants reports whether the user named a file for a flag.
func (f *files) wants(name string) bool {
	return slices.ContainsFunc(f.flags, func(flag *pflag.Flag) bool { return flag.Name == name && flag.Value.String() != "" })
}

// textOutput returns the writer for text: errOut if a file goes to stdout, and otherwise out.
func (f *files) textOutput(out, errOut io.Writer) io.Writer {
	if slices.ContainsFunc(f.flags, func(flag *pflag.Flag) bool { return flag.Value.String() == toStdout }) {
		return errOut
	}
	return out
}

// check rejects files that cannot be written or have two flags. Call check before the run starts.
func (f *files) check() (failed error) {
	flagOf := map[string]string{} // by path
	for _, flag := range f.flags {
		path := flag.Value.String()
		if path == "" {
			continue
		}
		full, err := filepath.Abs(path)
		if err != nil || path == toStdout {
			full = path
		}
		if other := flagOf[full]; other != "" {
			failed = errors.Join(failed, usage("--%s and --%s name the same file, %s", other, flag.Name, path))
		} else if path != toStdout {
			if err := report.CheckWritable(path); err != nil {
				failed = errors.Join(failed, fmt.Errorf("--%s: %w", flag.Name, err))
			}
		}
		flagOf[full] = flag.Name
	}
	return failed
}

// write writes all files that the user named. If one file fails, write still writes the others.
func (f *files) write(writers map[string]func(io.Writer) error, out, errOut io.Writer) (failed error) {
	for _, flag := range f.flags {
		var err error
		switch path := flag.Value.String(); path {
		case "":
			continue
		case toStdout:
			err = writers[flag.Name](out)
		default:
			if err = report.WriteFile(path, writers[flag.Name]); err == nil {
				_, _ = fmt.Fprintln(errOut, "wrote", path)
			}
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("--%s: %w", flag.Name, err))
		}
	}
	return failed
}
