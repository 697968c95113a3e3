package dash

import (
	"strings"
	"testing"
)

const ownCode = `package p

const afterSetNX api.Step = "after-setnx" // danger

func (l *lock) acquire() error {
	locks.Trace(ctx, api.Queued, r.Key, r.Owner, 0)

	// This comment does not run.
	for !free() {
		if err := l.try(); err != nil {
			return err
		}
		locks.Trace(ctx, afterSetNX, r.Key, r.Owner, 0)
	}
	switch {
	case l.fenced:
		locks.Trace(ctx, api.Writing, r.Key, r.Owner, 0)
	default:
		never()
	}
	return nil
}
`

const guardCode = `package locks

func deduct() {
	Trace(ctx, Asked, key, o.Owner, 0)
	hold, err := g.Acquire(ctx)
	defer func() {
		_ = hold.Release(ctx)
		Trace(ctx, Released, key, o.Owner, 0)
	}()
	// This comment has the word Granted.
	Trace(w.ctx, Granted, key, o.Owner, hold.Fence())
	if o.Nested {
		if !ok {
			Trace(ctx, Read, key, o.Owner, 0)
		}
	} else if other() {
		never()
	}
	write()
	Trace(ctx, Written, key, o.Owner, 0)
}
`

// TestLineOf: the marked line is the next one that runs. Comments, closing braces, and the other
// cases of a switch do not run next.
func TestLineOf(t *testing.T) {
	t.Parallel()
	files := []codeFile{
		{"own.go", strings.Split(ownCode, "\n")},
		{"guard.go", strings.Split(guardCode, "\n")},
		{"part.go", []string{"Trace(ctx, Taken, key, o.Owner, 0)", "this is no Go"}},
	}
	for step, want := range map[string]struct {
		file int
		code string // of the marked line
	}{
		"queued":      {0, "for !free() {"},
		"after-setnx": {0, "for !free() {"}, // the loop begins again
		"writing":     {0, "return nil"},
		"asked":       {1, "hold, err := g.Acquire(ctx)"},
		"granted":     {1, "if o.Nested {"},
		"read":        {1, "write()"},
		"released":    {1, "Trace(ctx, Released, key, o.Owner, 0)"}, // nothing follows in the function
		"written":     {1, "Trace(ctx, Written, key, o.Owner, 0)"},
		"taken":       {2, "Trace(ctx, Taken, key, o.Owner, 0)"},
	} {
		file, line, ok := lineOf(files, step)
		if !ok || file != want.file || strings.TrimSpace(files[file].Lines[line-1]) != want.code {
			t.Errorf("%s: file %d, line %d, %v; want %s", step, file, line, ok, want.code)
		}
	}
	if _, _, ok := lineOf(files, "compared"); ok {
		t.Error("a step that no line reports has a line")
	}
}
