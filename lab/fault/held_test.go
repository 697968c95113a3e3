package fault_test

import (
	"testing"
	"time"

	"oversell/lab/rig"
)

// TestHeldCommand holds the second command of a key back, on a link, while others pass.
func TestHeldCommand(t *testing.T) {
	l := link(t, "replica-1", "redis-2")
	direct, old := client(t, server(t, "redis-2").Addr()), client(t, l.Addr())
	if !answers(t, old) {
		t.Fatal("no answer before the fault")
	}
	held, err := l.HoldCommand("held:7", 2)
	must(t, err)
	t.Cleanup(func() { must(t, l.Restore()) })
	must(t, old.Set(t.Context(), "held:7", "a", 0).Err())
	must(t, old.Set(t.Context(), "another", "a", 0).Err())
	deleted := make(chan error, 1)
	go func() { deleted <- old.Del(t.Context(), "held:7").Err() }()
	eventually(t, "no command is held back", func() bool { return held.Name() != "" })
	if held.Name() != "DEL" || direct.Get(t.Context(), "held:7").Val() != "a" {
		t.Errorf("%s is held, and the key is %q", held.Name(), direct.Get(t.Context(), "held:7").Val())
	}
	later := make(chan error, 1)
	go func() { later <- client(t, l.Addr()).Append(t.Context(), "held:7", "b").Err() }()
	select {
	case <-later:
		t.Error("a later command of the key passes")
	case <-time.After(100 * time.Millisecond): // a fault shows only if it comes in this time
	}
	held.Deliver()
	held.Deliver()
	must(t, <-deleted)
	must(t, <-later)
	if !answers(t, old) {
		t.Error("no answer after the delivery")
	}
	must(t, l.Restore())

	must(t, direct.Set(t.Context(), "held:7", "c", 0).Err())
	held, err = l.HoldCommand("", 1)
	must(t, err)
	go func() { deleted <- client(t, l.Addr()).Del(t.Context(), "held:7").Err() }()
	eventually(t, "no command is held back", func() bool { return held.Name() != "" })
	must(t, l.Restore()) // loses the command
	if err := <-deleted; err == nil {
		t.Error("the lost command has an answer")
	}
	if value := direct.Get(t.Context(), "held:7").Val(); value != "c" {
		t.Errorf("the key is %q after a command that was lost", value)
	}
}

// TestHeldCommandsOnLinks counts the commands of two links together.
func TestHeldCommandsOnLinks(t *testing.T) {
	first, second := link(t, "replica-1", "redis-1"), link(t, "replica-1", "redis-2")
	held, err := rig.HoldCommandOn([]*rig.Link{first, second}, "both:7", 2)
	must(t, err)
	t.Cleanup(func() { must(t, first.Restore()); must(t, second.Restore()) })
	must(t, client(t, first.Addr()).Set(t.Context(), "both:7", "a", 0).Err())
	set := make(chan error, 1)
	go func() { set <- client(t, second.Addr()).Set(t.Context(), "both:7", "b", 0).Err() }()
	eventually(t, "no command is held back", func() bool { return held.Name() != "" })
	if value := client(t, server(t, "redis-2").Addr()).Get(t.Context(), "both:7").Val(); value != "" {
		t.Errorf("the second command has passed: %q", value)
	}
	held.Deliver()
	must(t, <-set)
}
