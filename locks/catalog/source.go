package catalog

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"oversell/locks"
	"oversell/locks/etcdlock"
	"oversell/locks/local"
	"oversell/locks/mysqllock"
	"oversell/locks/redislock"
	"oversell/locks/zklock"
)

var scripts = regexp.MustCompile(`(?m)^\t?//go:embed (\S+\.lua)$`)

// Source returns the code of a card's strategy: the file named after its id, the
// scripts that it embeds, and for a lock the sale around it.
func Source(card locks.Card) ([]locks.File, error) {
	family := map[string]struct {
		folder string
		files  fs.FS
	}{
		"local":     {"local", local.Source},
		"mysql":     {"mysqllock", mysqllock.Source},
		"redis":     {"redislock", redislock.Source},
		"zookeeper": {"zklock", zklock.Source},
		"etcd":      {"etcdlock", etcdlock.Source},
	}[card.Family]
	if family.files == nil {
		return nil, fmt.Errorf("source of %s: no family %q", card.ID, card.Family)
	}
	var files []locks.File
	add := func(from fs.FS, folder, name string) error {
		text, err := fs.ReadFile(from, name)
		if err != nil {
			return fmt.Errorf("source of %s: %w", card.ID, err)
		}
		files = append(files, locks.File{Name: folder + "/" + name, Text: string(text)})
		return nil
	}
	own := "locks/" + family.folder
	if err := add(family.files, own, strings.ReplaceAll(card.ID, "-", "_")+".go"); err != nil {
		return nil, err
	}
	for _, script := range scripts.FindAllStringSubmatch(files[0].Text, -1) {
		if err := add(family.files, own, script[1]); err != nil {
			return nil, err
		}
	}
	if card.Locker {
		if err := add(locks.Source, "locks", "guard.go"); err != nil {
			return nil, err
		}
	}
	return files, nil
}
