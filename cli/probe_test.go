package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestProbe(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			http.Error(w, `{"ready":false,"backends":{"redis":"refused"}}`, http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()

	for url, want := range map[string]string{
		server.URL + "/healthz": "",
		server.URL + "/readyz":  `503 Service Unavailable: {"ready":false,"backends":{"redis":"refused"}}`,
		gone.URL:                "refused",
		"127.0.0.1:8000":        "first path segment in URL cannot contain colon",
	} {
		err := probe(t.Context(), url)
		switch {
		case want == "" && err != nil:
			t.Errorf("probe(%s) = %v, want nil", url, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("probe(%s) = %v, want an error with %q", url, err, want)
		}
	}
}
