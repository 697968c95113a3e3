package report

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
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
		return fill(file, path, write)
	}
	file, err := beside(path)
	if err != nil {
		return err
	}
	if err := fill(file, path, write); err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	if err := os.Rename(file.Name(), resolved(path)); err != nil {
		return errors.Join(fmt.Errorf("write report: %w", err), os.Remove(file.Name()))
	}
	return nil
}

// fill writes and closes the file. The close may return the error of a full disk.
func fill(file *os.File, path string, write func(io.Writer) error) error {
	out := bufio.NewWriterSize(file, 1<<16)
	if err := errors.Join(write(out), out.Flush(), file.Close()); err != nil {
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

// resolved returns the target of a symbolic link, so that WriteFile does not replace the link.
func resolved(path string) string {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		return to
	}
	return path
}

// beside creates a new file in the folder of path, with the permissions of the file at path.
func beside(path string) (*os.File, error) {
	mode := fs.FileMode(0o666)
	path = resolved(path)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	dir, name := filepath.Split(path)
	part := filepath.Join(dir, "."+name+"."+rand.Text()[:8])
	file, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode) //nolint:gosec // the user's own path
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("write report %s: folder %s does not exist; create it first", path, filepath.Dir(path))
		}
		return nil, fmt.Errorf("write report %s: %w", path, err)
	}
	return file, nil
}
