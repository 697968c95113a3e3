package stepper

import (
	"strings"
	"testing"

	"oversell/api"
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

// TestPlaces: the place is the next statement that runs. Comments, closing braces, and the other cases of a switch
// do not run next.
func TestPlaces(t *testing.T) {
	t.Parallel()
	files := []api.File{{Name: "own.go", Text: ownCode}, {Name: "guard.go", Text: guardCode}, {Name: "part.lua", Text: "Trace(ctx, Taken)"}}
	places := Places(files)
	for step, want := range map[api.Step]struct {
		file int
		code string
	}{
		"queued":      {0, "for !free() {"},
		"after-setnx": {0, "for !free() {"}, // the loop begins again
		"writing":     {0, "return nil"},
		"asked":       {1, "hold, err := g.Acquire(ctx)"},
		"granted":     {1, "if o.Nested {"},
		"read":        {1, "write()"},
		"released":    {1, "Trace(ctx, Released, key, o.Owner, 0)"}, // nothing follows in the function
		"written":     {1, "Trace(ctx, Written, key, o.Owner, 0)"},
	} {
		at, found := places[step]
		if !found || at.File != want.file || strings.TrimSpace(strings.Split(files[at.File].Text, "\n")[at.Line]) != want.code {
			t.Errorf("%s: %+v, %v; want %s", step, at, found, want.code)
		}
	}
	if len(places) != 8 {
		t.Errorf("a step that no line reports has a place: %v", places)
	}
}
