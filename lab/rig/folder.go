package rig

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"
)

// newFolder returns a new path in the temporary folder, or an error if servers cannot run there.
func newFolder() (string, error) {
	// Absolute: a relative path would name other folders in the servers' own folders.
	tmp, err := filepath.Abs(os.TempDir())
	if err != nil {
		return "", fmt.Errorf("rig: %w", err)
	}
	info, err := os.Stat(tmp)
	if err != nil {
		return "", fmt.Errorf("rig: the folder for temporary files ($TMPDIR): %w. Create it, or set TMPDIR to one that exists", err)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("rig: %s ($TMPDIR) is not a folder. Set TMPDIR to one", tmp)
	}
	if i := strings.IndexFunc(tmp, unfit); i >= 0 {
		c, _ := utf8.DecodeRuneInString(tmp[i:])
		return "", fmt.Errorf("rig: the folder for temporary files ($TMPDIR), %s, has %q in its path, with which MariaDB, nginx or Java cannot start. Set TMPDIR to a folder whose path has only English letters, digits and /._-+@, such as /tmp",
			tmp, c)
	}
	name := fmt.Sprintf("%s%d-%06x", folderPrefix, os.Getpid(), rand.IntN(1<<24)) //nolint:gosec // not a secret
	return filepath.Join(tmp, name), nil
}

// unfit reports whether c may be special in start scripts, command lines or configuration files. Java takes
// letters beyond ASCII for others in some locales: ZooKeeper would write beside the lab's folder.
func unfit(c rune) bool {
	return c > unicode.MaxASCII || !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("/._-+@", c)
}

// littleSpace is the free space in bytes below which a disk counts as full.
const littleSpace = 100 << 20

// fewFiles is the number of free inodes below which a disk counts as full.
const fewFiles = 2000

// fullDisk returns an error if the disk of dir is full. A server logs a full disk before other
// errors, so the last lines of its log, which the rig reports, do not name the full disk.
func fullDisk(dir string) error {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return nil //nolint:nilerr // the free space is unknown
	}
	if disk.Files > 0 && disk.Ffree < fewFiles {
		return fmt.Errorf("rig: the disk of %s has no room for more files: only %d are free (df -i). Delete some, or set TMPDIR to a folder on another disk", dir, disk.Ffree)
	}
	if left := disk.Bavail * uint64(disk.Bsize); left < littleSpace { //nolint:gosec // positive
		return fmt.Errorf("rig: only %d MB are left on the disk of %s: a lab takes about 300 MB. Make room, or set TMPDIR to a folder on another disk", left>>20, dir)
	}
	return nil
}
