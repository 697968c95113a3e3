package player

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
)

// TestLostEventsAreCounted checks three kinds of loss. The replica reports lost steps, a step's
// text cannot be parsed, or a stream is opened again for the same process.
func TestLostEventsAreCounted(t *testing.T) {
	for _, test := range []struct {
		name   string
		events [][2]string
		want   int
	}{
		{"one stream", [][2]string{{"hello", `{"process":"a"}`}, {"step", `{"key":"stock:1"}`}}, 0},
		{"the replica was restarted", [][2]string{{"hello", `{"process":"a"}`}, {"hello", `{"process":"b"}`}}, 0},
		{"the stream broke", [][2]string{{"hello", `{"process":"a"}`}, {"hello", `{"process":"a"}`}}, 1},
		{"the recorder read too slowly", [][2]string{{"hello", `{"process":"a"}`}, {"missed", `{"steps":7}`}}, 7},
		{"half a step", [][2]string{{"hello", `{"process":"a"}`}, {"step", `{"key":`}}, 1},
	} {
		r := record(http.DefaultClient, nil, "")
		for _, e := range test.events {
			r.take("http://replica-1", e[0], []byte(e[1]))
		}
		if got := r.lostEvents(); got != test.want {
			t.Errorf("%s: %d events lost, want %d", test.name, got, test.want)
		}
		r.close()
	}
}

// TestBrokenStream breaks the streams of steps while requests buy. Then the recording says that steps are missing.
func TestBrokenStream(t *testing.T) {
	bed := open(t)
	bed.rec.close()
	var mu sync.Mutex
	var streams []net.Conn
	bed.rec = record(&http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		mu.Lock()
		defer mu.Unlock()
		streams = append(streams, c)
		return c, err
	}}}, bed.Rig.Addresses().Replicas, bed.Rig.Addresses().Token)
	if err := bed.AwaitConnected(t.Context()); err != nil {
		t.Fatal(err)
	}
	if lost := bed.LostEvents(); lost != 0 {
		t.Fatalf("%d events lost before", lost)
	}
	mu.Lock()
	for _, c := range streams {
		if c != nil {
			_ = c.Close()
		}
	}
	mu.Unlock()
	if err := Eventually(t.Context(), "the loss is known", func() bool { return bed.LostEvents() >= len(bed.Rig.Addresses().Replicas) }); err != nil {
		t.Error(err)
	}
}
