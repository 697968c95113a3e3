package rig

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"
)

// addressesFile is in the scratch folder of an announced lab, so it ends with the lab.
const addressesFile = "addresses.json"

// ErrNoLab is wrapped by the error of Running when no lab runs.
var ErrNoLab = errors.New("no lab is running")

// Announce lets this user's programs find the lab with Running.
func (r *Rig) Announce() error { return r.addrs.WriteFile(filepath.Join(r.dir, addressesFile)) }

// Running returns the addresses of the newest lab that was announced by this user and still runs.
func Running() (Addresses, error) {
	folders, err := ownFolders(os.TempDir())
	if err != nil {
		return Addresses{}, fmt.Errorf("rig: %w", err)
	}
	var newest time.Time
	var path string
	for _, dir := range folders {
		file := filepath.Join(dir, addressesFile)
		if info, err := os.Lstat(file); err == nil && info.ModTime().After(newest) && isRunning(dir) {
			newest, path = info.ModTime(), file
		}
	}
	if path == "" {
		return Addresses{}, fmt.Errorf("rig: %w", ErrNoLab)
	}
	addrs, err := ReadAddresses(path)
	if errors.Is(err, fs.ErrNotExist) { // it has just ended
		return addrs, fmt.Errorf("rig: %w", ErrNoLab)
	}
	return addrs, err
}

// WriteFile replaces the file at once, so that no program reads half of the addresses.
// Only the user may read the file, because it contains passwords and the token.
func (a Addresses) WriteFile(path string) error {
	text, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return fmt.Errorf("rig: %w", err)
	}
	if err := renameio.WriteFile(path, append(text, '\n'), 0o600, renameio.WithTempDir(filepath.Dir(path))); err != nil {
		return fmt.Errorf("rig: %w", err)
	}
	return nil
}

// ReadAddresses reads a file that WriteFile wrote.
func ReadAddresses(path string) (addrs Addresses, err error) {
	var text []byte
	file, err := os.Open(path) //nolint:gosec // the user's own
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(file, 1<<20)) // a device may have no end
		_ = file.Close()
	}
	if err == nil {
		err = json.Unmarshal(text, &addrs)
	}
	if err != nil {
		return addrs, fmt.Errorf("read the addresses of a lab: %w; \"oversell lab --json FILE\" writes such a file", err)
	}
	return addrs, nil
}
