package catalog

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
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
	files, err := sourceOf(card.Family, card.ID)
	if err != nil {
		return nil, err
	}
	for _, last := range []string{"guard.go", "transaction.go"} {
		if slices.Contains(Contract(card, files), "locks/"+last) {
			text, _ := fs.ReadFile(locks.Source, last) // no error: Contract has found it
			files = append(files, api.File{Name: "locks/" + last, Text: string(text)})
		}
	}
	return files, nil
}

var function = regexp.MustCompile(`(?m)^func ([A-Z]\w*)\(`)

// Contract returns the names of the files of package locks that a reader of the strategy needs: guard.go
// for a Locker, and those with a function that the strategy's files call, which Source returns.
func Contract(card api.Card, files []api.File) (names []string) {
	shared, _ := fs.Glob(locks.Source, "*.go") // no error: the pattern is good
	for _, name := range shared {
		text, _ := fs.ReadFile(locks.Source, name) // no error: Glob has found it
		calls := func(f api.File) bool {
			return name != "guard.go" && slices.ContainsFunc(function.FindAllSubmatch(text, -1), func(found [][]byte) bool {
				return strings.Contains(f.Text, "locks."+string(found[1])+"(")
			})
		}
		if name == "guard.go" && card.Locker || slices.ContainsFunc(files, calls) {
			names = append(names, "locks/"+name)
		}
	}
	return names
}

// connects reports whether a file of a family only connects to its servers: no strategy can be understood by it.
func connects(name string) bool {
	return slices.Contains([]string{"access.go", "address.go", "chroot.go", "open.go"}, name)
}

// sourceOf returns the file of a family that is named after the id, and the files that it uses.
func sourceOf(family, id string) (files []api.File, err error) {
	from := map[string]struct {
		folder string
		files  fs.FS
	}{
		"local":     {"local", local.Source},
		"mysql":     {"mysqllock", mysqllock.Source},
		"redis":     {"redislock", redislock.Source},
		"zookeeper": {"zklock", zklock.Source},
		"etcd":      {"etcdlock", etcdlock.Source},
	}[family]
	if from.files == nil {
		return nil, fmt.Errorf("source of %s: no family %q", id, family)
	}
	names, err := follow(from.files, strings.ReplaceAll(id, "-", "_")+".go")
	if err != nil {
		return nil, fmt.Errorf("source of %s: %w", id, err)
	}
	for _, name := range names {
		if connects(name) {
			continue
		}
		text, _ := fs.ReadFile(from.files, name) // no error: follow has read it
		files = append(files, api.File{Name: "locks/" + path.Join(from.folder, name), Text: string(text)})
	}
	return files, nil
}
