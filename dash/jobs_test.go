package dash

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"oversell/lab/comparison"
	"oversell/lab/load"
	"oversell/lab/rig"
)

// TestNextJobCanStartAtTheEnd checks that the next run can start as soon as a page shows the end of
// a run.
func TestNextJobCanStartAtTheEnd(t *testing.T) {
	s := New(Config{Lab: rig.Addresses{Target: "http://127.0.0.1:1"}}) // no service: a run ends
	defer s.Close()
	server := httptest.NewServer(s)
	defer server.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/dash/stream/run", nil)
	if err != nil {
		t.Fatal(err)
	}
	page, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = page.Body.Close() }()
	lines := bufio.NewScanner(page.Body)
	for range 200 {
		err := s.runs.follow(t.Context(), "a test", comparison.Plan{Plan: load.Plan{Target: s.Lab.Target, Clients: 1, Loops: 1}})
		if err != nil {
			t.Fatalf("the page said that the last run had ended: %v", err)
		}
		for begun := false; ; {
			if !lines.Scan() {
				t.Fatalf("the stream ended: %v", lines.Err())
			}
			var state struct{ Running *bool }
			data, is := strings.CutPrefix(lines.Text(), "data: ")
			if !is || json.Unmarshal([]byte(data), &state) != nil || state.Running == nil {
				continue
			}
			if begun && !*state.Running {
				break
			}
			begun = begun || *state.Running
		}
	}
}
