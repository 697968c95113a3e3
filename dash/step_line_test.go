package dash

import (
	"strings"
	"testing"
)

func TestLineOf(t *testing.T) {
	t.Parallel()
	files := []codeFile{
		{"own.go", strings.Split(`const afterSetNX api.Step = "after-setnx" // danger
	locks.Trace(ctx, api.Queued, r.Key, r.Owner, 0)
	locks.Trace(ctx, afterSetNX, r.Key, r.Owner, 0)`, "\n")},
		{"guard.go", strings.Split(`	Trace(ctx, Asked, key, o.Owner, 0)
	// This comment has the word Granted.
	Trace(w.ctx, Granted, key, o.Owner, hold.Fence())`, "\n")},
	}
	for _, c := range []struct {
		step       string
		file, line int
		ok         bool
	}{
		{"queued", 0, 2, true},
		{"after-setnx", 0, 3, true},
		{"asked", 1, 1, true},
		{"granted", 1, 3, true},
		{"released", 0, 0, false},
		{"compared", 0, 0, false},
	} {
		if file, line, ok := lineOf(files, c.step); file != c.file || line != c.line || ok != c.ok {
			t.Errorf("%s: file %d, line %d, %v", c.step, file, line, ok)
		}
	}
}
