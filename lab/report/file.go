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

// CheckWritable finds out before a run whether its report can be written to path after
// it. It leaves nothing behind, and an existing file as it is.
func CheckWritable(path string) error {
	direct, err := special(path)
	if err != nil {
		return err
	}
	if direct {
		return nil
	}
	// Renaming over a write-protected file would work, but is not what its owner wants.
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

// WriteFile writes a report so that path holds all of it or what it held before: first
// to a new file in the same folder, which then takes the name. Devices and pipes, such
// as /dev/stdout, are written directly.
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

// fill writes and closes. A full disk may show only when the file is closed.
func fill(file *os.File, path string, write func(io.Writer) error) error {
	out := bufio.NewWriterSize(file, 1<<16)
	if err := errors.Join(write(out), out.Flush(), file.Close()); err != nil {
		return fmt.Errorf("write report %s: %w", path, err)
	}
	return nil
}

// special reports whether path names something that must not be replaced by a file.
func special(path string) (bool, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("write report: %w", err)
	case info.IsDir():
		return false, fmt.Errorf("write report %s: is a folder", path)
	}
	// Behind /dev/stdout there may be a regular file, which the shell holds open.
	underDev := filepath.Dir(filepath.Clean(path)) == "/dev" || filepath.Dir(filepath.Clean(path)) == "/dev/fd"
	return underDev || !info.Mode().IsRegular(), nil
}

// resolved follows a link, so that the file that it points to is replaced, not the link.
func resolved(path string) string {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		return to
	}
	return path
}

// beside creates a new file in path's folder, with the rights that a file at path has
// or would get.
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
			return nil, fmt.Errorf("write report %s: there is no folder %s", path, filepath.Dir(path))
		}
		return nil, fmt.Errorf("write report %s: %w", path, err)
	}
	return file, nil
}
