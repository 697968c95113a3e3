package api_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"oversell/api"
)

// replica starts a server that always sends the same answer. It returns a client of the server, the
// last request, and the body of this request.
func replica(t *testing.T, status int, contentType, body string) (api.Client, *http.Request, *[]byte) {
	t.Helper()
	var got http.Request
	var sent []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = *r
		sent, _ = io.ReadAll(r.Body)
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return api.Client{Base: server.URL, Token: "secret", HTTP: server.Client()}, &got, &sent
}

func TestRefused(t *testing.T) {
	for _, test := range []struct {
		name, body, want string
		outcome          api.Outcome
	}{
		{"by the service", `{"outcome":"forbidden","detail":"needs the token"}`, "403 Forbidden: needs the token", api.Forbidden},
		{"by a stranger", "<html>no entry</html>", "403 Forbidden: <html>no entry</html>", ""},
		{"with half a problem", `{"outcome":"forbidden","detail":7}`, `403 Forbidden: {"outcome"`, ""},
		{"at length", strings.Repeat("x", 5000), "403 Forbidden: " + strings.Repeat("x", 200), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			client, _, _ := replica(t, http.StatusForbidden, "text/plain", test.body)
			err := client.SetStock(t.Context(), 7, 100)
			var refused *api.Error
			if !errors.As(err, &refused) || refused.Status != http.StatusForbidden || refused.Problem.Outcome != test.outcome {
				t.Fatalf("got %#v", err)
			}
			if !strings.Contains(err.Error(), "PUT "+client.Base+"/stock/7?new=true&count=100: "+test.want) || len(err.Error()) > 400 {
				t.Errorf("the error says %q", err)
			}
		})
	}
}

func TestForeignAnswer(t *testing.T) {
	client, _, _ := replica(t, http.StatusOK, "text/html", "<html>")
	if _, err := client.Cards(t.Context()); err == nil || !strings.Contains(err.Error(), "does not answer like a replica of oversell") {
		t.Errorf("got %v", err)
	}
}

func TestArm(t *testing.T) {
	client, got, sent := replica(t, http.StatusOK, "application/json", `{}`)
	if err := client.Arm(t.Context(), api.Failpoint{Strategy: "redis", Product: 3, Step: api.Writing}); err != nil {
		t.Fatal(err)
	}
	if got.Header.Get(api.TokenHeader) != "secret" || got.Header.Get("Content-Type") != "application/json" {
		t.Errorf("the headers are %v", got.Header)
	}
	var body map[string]any
	if err := json.Unmarshal(*sent, &body); err != nil || body["step"] != "writing" || body["product"] != 3.0 {
		t.Errorf("sent %s", *sent)
	}
	for _, name := range []string{"times", "do", "key"} { // the service has defaults for them
		if _, there := body[name]; there {
			t.Errorf("sent %s", *sent)
		}
	}
}

func TestFollow(t *testing.T) {
	client, _, _ := replica(t, http.StatusOK, "text/event-stream", "event:hello\ndata:{}\n\nevent:step\ndata:{\"step\":\"read\"}\n\n")
	var kinds []string
	err := client.Follow(t.Context(), func(kind string, data []byte) { kinds = append(kinds, kind+" "+string(data)) })
	if want := []string{"hello {}", `step {"step":"read"}`}; err != nil || !slices.Equal(kinds, want) {
		t.Errorf("got %q, %v, want %q", kinds, err, want)
	}
	refused, _, _ := replica(t, http.StatusServiceUnavailable, "application/json", `{"outcome":"too_many_streams"}`)
	var e *api.Error
	if err := refused.Follow(t.Context(), nil); !errors.As(err, &e) || e.Problem.Outcome != api.TooManyStreams {
		t.Errorf("a refused stream: %v", err)
	}
}

// TestTookNothing checks that an unknown outcome does not count as "nothing was taken".
func TestTookNothing(t *testing.T) {
	for outcome, want := range map[api.Outcome]bool{
		api.SoldOut: true, api.NotAcquired: true, api.Lost: true, api.Fenced: true, api.Cancelled: true, api.Forbidden: true,
		api.Sold: false, api.Unknown: false, "": false, "soldout": false, api.Credited: false,
	} {
		if got := outcome.TookNothing(); got != want {
			t.Errorf("%q took nothing: %t", outcome, got)
		}
	}
}
