package report

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// CheckWritable returns an error if no report can be written to path. It leaves no new file.
func CheckWritable(path string) error {
	direct, err := special(path)
	if err != nil {
		return err
	}
	if direct {
		return nil
	}
	// The rename in WriteFile would replace even a write-protected file, against its owner's wish.
	file, err := os.OpenFile(path, os.O_WRONLY, 0) //nolint:gosec // the user's own path
	switch {
	case err == nil:
		_ = file.Close()
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("write report: %w", err)
	}
	probe, err := beside(path)
	if err != nil {
		return err
	}
	return probe.Cleanup()
}

// WriteFile writes a report to a new file and renames it, so that an error leaves the old file as
// it was. It writes directly to devices and pipes, such as /dev/stdout.
func WriteFile(path string, write func(io.Writer) error) error {
	direct, err := special(path)
	if err != nil {
		return err
	}
	if direct {
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0) //nolint:gosec // the user's own path
		if err != nil {
			return fmt.Errorf("write report: %w", err)
		}
		defer func() { _ = file.Close() }() // after an error
		return fill(file, path, write, file.Close)
	}
	file, err := beside(path)
	if err != nil {
		return err
	}
	return errors.Join(fill(file, path, write, file.CloseAtomicallyReplace), file.Cleanup())
}

// fill writes the file, and ends it without an error. The end may return the error of a full disk.
func fill(file io.Writer, path string, write func(io.Writer) error, end func() error) error {
	out := bufio.NewWriterSize(file, 1<<16)
	err := errors.Join(write(out), out.Flush())
	if err == nil {
		err = end()
	}
	if err != nil {
		return fmt.Errorf("write report %s: %w", path, err)
	}
	return nil
}

// special reports whether path is a device or a pipe, which WriteFile must not replace.
func special(path string) (bool, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("write report: %w", err)
	case info.IsDir():
		return false, fmt.Errorf("write report %s: it is a folder; name a file in it", path)
	}
	// /dev/stdout may be a regular file that the shell holds open.
	underDev := filepath.Dir(filepath.Clean(path)) == "/dev" || filepath.Dir(filepath.Clean(path)) == "/dev/fd"
	return underDev || !info.Mode().IsRegular(), nil
}

// beside creates a new file in the folder of path, with the permissions of the file at path. If path is a symbolic
// link, the new file takes the place of the link's target.
func beside(path string) (*renameio.PendingFile, error) {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to
	}
	file, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), renameio.WithPermissions(0o666), renameio.WithExistingPermissions())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("write report %s: folder %s does not exist; create it first", path, filepath.Dir(path))
	}
	if err != nil {
		return nil, fmt.Errorf("write report %s: %w", path, err)
	}
	return file, nil
}
