package cli

import (
	"fmt"
	"os"
)

// output is standard output, which remembers its first error. Most commands print line by line and look at no
// error; without it, they would end with status 0 when the disk is full.
type output struct {
	file   *os.File
	failed error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.file.Write(p)
	if o.failed == nil {
		o.failed = err
	}
	return n, err
}

// Fd is for terminal.Of, which fits the text to a terminal.
func (o *output) Fd() uintptr { return o.file.Fd() }

// or returns err, or else the first error of the output.
func (o *output) or(err error) error {
	if err == nil && o.failed != nil {
		return fmt.Errorf("the output is not complete: %w", o.failed)
	}
	return err
}
