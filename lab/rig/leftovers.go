package rig

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

const folderPrefix = "oversell-lab-"

// groupsFile is a file in every scratch folder. It has the same lines as the pipe to the reaper:
// the process groups in use. The rig and its reaper hold a shared lock on the file while they live.
// If the file is not locked, both were killed, and the next rig cleans up: see sweep.
const groupsFile = "groups"

// createGroups creates the file in dir, and returns it locked. It gives the file its final name
// after it has locked the file, because sweep treats a lab whose file is not locked as dead.
func createGroups(dir string) (*os.File, error) {
	path := filepath.Join(dir, groupsFile)
	file, err := openShared(path+".new", os.O_CREATE|os.O_EXCL|os.O_WRONLY)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	return file, err
}

// openShared opens a file and locks it, shared, until it is closed or the program ends.
func openShared(path string, flags int) (*os.File, error) {
	file, err := os.OpenFile(path, flags, 0o600) //nolint:gosec // in our folder
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_SH); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return file, nil
}

// sweep cleans up after rigs in tmp that were killed together with their reapers. The kernel has
// ended their servers, but not nginx's workers, which still hold nginx's port. sweep logs its
// actions, or what the user has to do if the processes left are unknown.
func sweep(tmp string, log func(format string, args ...any)) {
	folders, _ := ownFolders(tmp) // creating the next folder there returns the same error
	for _, dir := range folders {
		sweepFolder(dir, log)
	}
}

// ownFolders returns the folders of this user's rigs in tmp, which is often shared: any user can have made
// a folder with such a name.
func ownFolders(tmp string) (folders []string, err error) {
	entries, err := os.ReadDir(tmp)
	for _, entry := range entries {
		info, gone := entry.Info()
		if gone != nil || !info.IsDir() || !strings.HasPrefix(entry.Name(), folderPrefix) {
			continue
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) == os.Geteuid() {
			folders = append(folders, filepath.Join(tmp, entry.Name()))
		}
	}
	return folders, err
}

// openGroups opens the groups file of dir. running says that its rig or reaper still lives.
// Otherwise the caller has the file's exclusive lock until it closes the file.
func openGroups(dir string) (file *os.File, running bool, err error) {
	file, err = os.OpenFile(filepath.Join(dir, groupsFile), os.O_RDONLY|syscall.O_NOFOLLOW, 0) //nolint:gosec // in a rig's folder
	if err != nil {
		return nil, false, err
	}
	return file, syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil, nil
}

// isRunning reports whether the rig of the folder dir is running.
func isRunning(dir string) bool {
	file, running, err := openGroups(dir)
	if err != nil {
		return false
	}
	_ = file.Close()
	return running
}

// sweepFolder removes dir if it is the folder of a dead rig.
func sweepFolder(dir string, log func(format string, args ...any)) {
	file, running, err := openGroups(dir)
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }()
	if running {
		return
	}
	var ended []string
	for group := range readGroups(file) {
		members, sure := membersIn(group, dir)
		if !sure {
			log("a lab was killed together with its reaper, and its processes may still run. End them and remove its files: pkill -9 -g %d; rm -r %s", group, dir)
			return
		}
		if len(members) == 0 {
			continue // the group has ended; another one may have its number now
		}
		killGroup(group)
		awaitGroup(group)
		ended = append(ended, members...)
	}
	if err := removeAll(dir); err != nil {
		log("a lab was killed together with its reaper, and left %s, which cannot be removed: %v", dir, err)
		return
	}
	result := "no process was left"
	if len(ended) > 0 {
		slices.Sort(ended)
		result = "ended " + strings.Join(ended, ", ")
	}
	log("cleaned up after a lab that was killed together with its reaper: %s, removed %s", result, dir)
}
