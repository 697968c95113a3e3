package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/pflag"

	"oversell/lab/history"
	"oversell/lab/report"
)

// toStdout is the file name that means stdout.
const toStdout = "-"

// reportFiles are the files that a run was asked to write; "" for none.
type reportFiles struct{ json, csv, html string }

func (f *reportFiles) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.json, "json", "", "write the results to `FILE`, an array of objects")
	flags.StringVar(&f.csv, "csv", "", "write every request to `FILE`, in JMeter's JTL columns")
	flags.StringVar(&f.html, "html", "", "write a page with charts to `FILE`, complete in itself")
}

// each calls do for every file that was asked for.
func (f *reportFiles) each(do func(flag, path string)) {
	for _, file := range [][2]string{{"--json", f.json}, {"--csv", f.csv}, {"--html", f.html}} {
		if file[1] != "" {
			do(file[0], file[1])
		}
	}
}

// stdout reports whether a report takes stdout for itself.
func (f *reportFiles) stdout() bool {
	return f.json == toStdout || f.csv == toStdout || f.html == toStdout
}

// check finds out before the run what would spoil its end.
func (f *reportFiles) check() error {
	var wrong error
	taken := map[string]string{}
	f.each(func(flag, path string) {
		full, err := filepath.Abs(path)
		if err != nil || path == toStdout {
			full = path
		}
		switch other := taken[full]; {
		case other != "":
			wrong = errors.Join(wrong, &exit{2, fmt.Errorf("run: %s and %s name the same file, %s", other, flag, path)})
		case path != toStdout:
			if err := report.CheckWritable(path); err != nil {
				wrong = errors.Join(wrong, fmt.Errorf("run: %s: %w", flag, err))
			}
		}
		taken[full] = flag
	})
	return wrong
}

// write writes them all; one that fails does not keep the others back.
func (f *reportFiles) write(results []report.Result, histories []history.History, out, errOut io.Writer) error {
	return f.writeAll(map[string]func(io.Writer) error{
		"--json": func(w io.Writer) error { return report.JSON(w, results) },
		"--csv":  func(w io.Writer) error { return report.JTL(w, histories) },
		"--html": func(w io.Writer) error { return report.HTML(w, results) },
	}, out, errOut)
}

// writeCurves is write for sweeps.
func (f *reportFiles) writeCurves(curves []report.Curve, out, errOut io.Writer) error {
	return f.writeAll(map[string]func(io.Writer) error{
		"--json": func(w io.Writer) error { return report.JSON(w, curves) },
		"--html": func(w io.Writer) error { return report.CurveHTML(w, curves) },
	}, out, errOut)
}

func (f *reportFiles) writeAll(writers map[string]func(io.Writer) error, out, errOut io.Writer) error {
	var failed error
	f.each(func(flag, path string) {
		var err error
		if path == toStdout {
			err = writers[flag](out)
		} else {
			err = report.WriteFile(path, writers[flag])
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("run: %s: %w", flag, err))
			return
		}
		if path != toStdout {
			_, _ = fmt.Fprintln(errOut, "wrote", path)
		}
	})
	return failed
}
