package catalog

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"oversell/api"
	"oversell/locks"
	"oversell/locks/etcdlock"
	"oversell/locks/local"
	"oversell/locks/mysqllock"
	"oversell/locks/redislock"
	"oversell/locks/zklock"
)

// Source returns the files of a card's strategy, in reading order. The first is named after the
// card's ID. The files that it uses follow, each with its Lua scripts. Last comes guard.go for a
// Locker, or transaction.go for a sale in a transaction, and no other file of package locks.
func Source(card api.Card) ([]api.File, error) {
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
	var files []api.File
	add := func(from fs.FS, folder, name string) error {
		text, err := fs.ReadFile(from, name)
		if err != nil {
			return fmt.Errorf("source of %s: %w", card.ID, err)
		}
		files = append(files, api.File{Name: "locks/" + path.Join(folder, name), Text: string(text)})
		return nil
	}
	names, err := follow(family.files, strings.ReplaceAll(card.ID, "-", "_")+".go")
	if err != nil {
		return nil, fmt.Errorf("source of %s: %w", card.ID, err)
	}
	for _, name := range names {
		if err := add(family.files, family.folder, name); err != nil {
			return nil, err
		}
	}
	switch {
	case card.Locker:
		return files, add(locks.Source, "", "guard.go")
	case slices.ContainsFunc(files, func(f api.File) bool { return strings.Contains(f.Text, "locks.InTransaction(") }):
		return files, add(locks.Source, "", "transaction.go")
	default:
		return files, nil
	}
}
