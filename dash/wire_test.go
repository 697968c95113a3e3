package dash_test

import (
	"bufio"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestWire measures what a browser receives for the page Break: the page, its scripts and its style.
func TestWire(t *testing.T) {
	t.Parallel()
	sum := 0
	for _, path := range []string{"/dash/break", "/dash/static/dash.css", "/dash/static/dash.js", "/dash/static/break.js"} {
		response := encoded(t, testLab.Addresses().Target+path)
		body, err := io.ReadAll(response.Body)
		if err != nil || response.Header.Get("Content-Encoding") != "gzip" {
			t.Errorf("%s: encoding %q, %v", path, response.Header.Get("Content-Encoding"), err)
		}
		t.Logf("%s: %d bytes", path, len(body))
		sum += len(body)
	}
	if sum > 60_000 {
		t.Errorf("the page Break has %d bytes, more than 60,000", sum)
	}
}

// encoded requests an address like a browser, which accepts gzip. The body remains encoded.
func encoded(t *testing.T, address string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", "gzip")
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// TestCompressedStream checks that a compressed stream sends its first event at once, and not when a buffer is
// full.
func TestCompressedStream(t *testing.T) {
	t.Parallel()
	response := encoded(t, testLab.Addresses().Target+"/dash/stream/break")
	unpacked, err := gzip.NewReader(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(unpacked)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream sent no count: %v", err)
		}
		if strings.HasPrefix(line, "event: count") {
			return
		}
	}
}
