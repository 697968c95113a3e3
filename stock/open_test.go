package stock

import (
	"context"
	"net"
	"testing"
	"time"
)

// TestDialUntilTheDeadline checks that a dial that fails at the deadline of its context returns after
// the context has ended: a caller that gives up must not conclude that the server is unavailable.
func TestDialUntilTheDeadline(t *testing.T) {
	server, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	failed := 0
	for i := range 5000 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%100)*2*time.Microsecond)
		conn, err := dial(ctx, "tcp", server.Addr().String())
		switch {
		case err == nil:
			_ = conn.Close()
		case ctx.Err() == nil:
			t.Fatalf("attempt %d: %v, but its context has not ended", i, err)
		default:
			failed++
		}
		cancel()
	}
	if failed == 0 {
		t.Error("no dial met its deadline")
	}
}
