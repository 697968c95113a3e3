package fault_test

import (
	"testing"

	"oversell/lab/fault"
)

func TestLostAnswer(t *testing.T) {
	l := link(t, "replica-1", "redis-2")
	direct := client(t, server(t, "redis-2").Addr())
	must(t, direct.Set(t.Context(), "number", 41, 0).Err())
	bystander, c := client(t, l.Addr()), client(t, l.Addr())
	if !answers(t, bystander) || !answers(t, c) {
		t.Fatal("no answer before the fault")
	}
	heal := inject(t, fault.LostAnswer(l, "number", 1))
	if !answers(t, bystander) || !answers(t, c) {
		t.Error("another reply is lost")
	}
	if l.HasLostReply() {
		t.Error("the reply to another command counts as lost")
	}
	if n, err := c.Incr(t.Context(), "number").Result(); err == nil {
		t.Errorf("the reply arrives: %d", n)
	}
	if !l.HasLostReply() {
		t.Error("the lost reply is not reported")
	}
	if n := direct.Get(t.Context(), "number").Val(); n != "42" {
		t.Errorf("the number is %s: the request was not executed once", n)
	}
	if !answers(t, bystander) {
		t.Error("the other connection does not live on")
	}
	// Only one reply is lost: that to the next command arrives.
	must(t, direct.Set(t.Context(), "number", 41, 0).Err())
	if n := c.Incr(t.Context(), "number").Val(); n != 42 {
		t.Errorf("the second reply: %d", n)
	}
	heal()
	heal()
	if l.HasLostReply() {
		t.Error("the reply still counts as lost after the heal")
	}
	if !answers(t, c) {
		t.Error("no answer after the heal")
	}
	lose := func() error { _, err := l.LoseAnswer("x", 1); return err }
	must(t, lose())
	if err := lose(); err == nil {
		t.Error("two at a time, no error")
	}
	must(t, l.Restore())
}
