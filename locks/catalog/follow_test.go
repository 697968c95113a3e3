package catalog

import (
	"slices"
	"testing"
	"testing/fstest"
)

// TestFollow checks that follow returns exactly the files that a strategy uses, in the order of the
// first use.
func TestFollow(t *testing.T) {
	files := fstest.MapFS{}
	for name, text := range map[string]string{
		"lock.go": `package p

//go:embed lock.lua
var script string

func Lock() *lock { return &lock{keys: 1} }

type lock struct{ keys int }

func (l *lock) Acquire() { notify(func(wait int) { l.keys = wait }) }
`,
		"notify.go":  "package p\n\nfunc notify(f func(int)) { var q queue; q.push(f); f(limit) }\n",
		"queue.go":   "package p\n\ntype queue struct{}\n\nfunc (queue) push(func(int)) {}\n",
		"deeper.go":  "package p\n\nfunc (queue) pop() { unreached() }\n",
		"limit.go":   "package p\n\nconst limit = 1\n",
		"other.go":   "package p\n\nfunc wait() {}\n\ntype keys struct{}\n\nfunc (keys) push() {}\n\nfunc unreached() {}\n",
		"x_test.go":  "package p\n\nfunc notify() {}\n",
		"lock.lua":   "-- KEYS[1] lock",
		"unused.lua": "-- nothing",
	} {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	got, err := follow(files, "lock.go")
	if want := []string{"lock.go", "lock.lua", "notify.go", "queue.go", "limit.go"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if _, err := follow(files, "absent.go"); err == nil {
		t.Error("no error for a file that does not exist")
	}
}
