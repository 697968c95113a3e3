package load

import (
	"crypto/x509"
	"io"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oversell/lab/history"
)

func valid() Plan {
	return Plan{
		Target: "http://127.0.0.1:8080", Strategy: "redis", Product: 1, Qty: 1,
		Clients: 100, Loops: 50, Wait: 10 * time.Second,
	}
}

func TestValidate(t *testing.T) {
	tests := []struct {
		change func(*Plan)
		want   string // prefix of the error; empty means none
	}{
		{func(*Plan) {}, ""},
		{func(p *Plan) { p.Clients, p.Loops = MaxClients, MaxRequests/MaxClients }, ""},
		{func(p *Plan) { p.Clients = 0 }, "clients 0: "},
		{func(p *Plan) { p.Clients = -3 }, "clients -3: "},
		{func(p *Plan) { p.Clients = MaxClients + 1 }, "clients 10001: "},
		{func(p *Plan) { p.Loops = 0 }, "loops 0: "},
		{func(p *Plan) { p.Loops = -1 }, "loops -1: "},
		{func(p *Plan) { p.Loops = MaxRequests }, "clients 100 x loops 1000000: "},
		{func(p *Plan) { p.Clients, p.Loops = 2, 1<<62 }, "clients 2 x loops "},
		{func(p *Plan) { p.Product = 0 }, "product 0: "},
		{func(p *Plan) { p.Qty = 0 }, "qty 0: "},
		{func(p *Plan) { p.RampUp = -1 }, "ramp-up -1ns: "},
		{func(p *Plan) { p.Hold = -time.Second }, "hold -1s: "},
		{func(p *Plan) { p.Wait = -time.Second }, "wait -1s: "},
		{func(p *Plan) { p.Hold, p.Wait = MaxDuration, MaxDuration }, ""},
		{func(p *Plan) { p.Hold = 10 * time.Hour }, "hold 10h0m0s: must be 0s to 1m0s"},
		{func(p *Plan) { p.Wait = MaxDuration + 1 }, "wait 1m0.000000001s: "},
		{func(p *Plan) { p.Timeout = p.Wait }, "timeout 10s: "},
		{func(p *Plan) { p.Target = "" }, `target "": must be a URL`},
		{func(p *Plan) { p.Rate = 2000 }, ""},
		{func(p *Plan) { p.Rate = -1 }, "rate -1/s: must be 1/m to 100000/s"},
		{func(p *Plan) { p.Rate = maxRate + 1 }, "rate 100001/s: "},
		{func(p *Plan) { p.Rate = Rate(math.NaN()) }, "rate NaN"},
		{func(p *Plan) { p.Rate, p.RampUp = 10, time.Second }, "ramp-up 1s: cannot be used with a rate"},
		{func(p *Plan) { p.Rate, p.Every = 10, time.Second }, "every 1s: cannot be used with a rate"},
	}
	for _, tt := range tests {
		p := valid()
		tt.change(&p)
		err := p.Validate()
		if (tt.want == "") != (err == nil) || err != nil && !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("error %v, want %q", err, tt.want)
		}
	}
}

func TestParseTarget(t *testing.T) {
	good := map[string]string{
		"http://127.0.0.1:8080":     "http://127.0.0.1:8080",
		"http://127.0.0.1:8080/":    "http://127.0.0.1:8080",
		"127.0.0.1:8080":            "http://127.0.0.1:8080",
		"lab.example:80/base/":      "http://lab.example:80/base",
		"https://lab.example/base":  "https://lab.example/base",
		"http://[::1]:8080":         "http://[::1]:8080",
		"localhost":                 "http://localhost",
		"http://host:8080/a//":      "http://host:8080/a",
		"http://127.0.0.1:8080/a/b": "http://127.0.0.1:8080/a/b",
	}
	for in, want := range good {
		if u, err := ParseTarget(in); err != nil || u.String() != want {
			t.Errorf("%q gives %v, %v; want %s", in, u, err, want)
		}
	}
	for _, in := range []string{"", "ftp://x", "http://", "://", "http://x?a=b", "http://x/#f", "http://u:p@x", "http://a b", ":8080", "\x7f"} {
		if u, err := ParseTarget(in); err == nil {
			t.Errorf("%q gives %v, want an error", in, u)
		}
	}
}

func TestURLCarriesThePlan(t *testing.T) {
	p := valid()
	p.Strategy, p.Hold, p.Wait, p.Qty, p.Target = "a&b=c", 5*time.Millisecond, 1500*time.Millisecond, 2, "http://h:1/base"
	full, err := p.URL()
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(full)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	if u.Path != "/base/check/lock" || q.Get("strategy") != "a&b=c" || q.Get("hold") != "5ms" || q.Get("wait") != "1.5s" ||
		q.Get("qty") != "2" || q.Get("product") != "1" {
		t.Errorf("the URL is %s", full)
	}
}

func TestTimeoutIsAboveWaitAndHold(t *testing.T) {
	p := valid()
	p.Wait, p.Hold = 60*time.Second, 30*time.Second
	if got := p.timeout(); got <= 90*time.Second {
		t.Errorf("the timeout is %v, want more than 90s", got)
	}
	p.Timeout = 2 * time.Minute
	if got := p.timeout(); got != 2*time.Minute {
		t.Errorf("the timeout is %v, want 2m", got)
	}
}

func TestSeedDrawsTheOrder(t *testing.T) {
	a, b, other := order(42, 100), order(42, 100), order(43, 100)
	if !slices.Equal(a, b) {
		t.Error("the same seed gave two orders")
	}
	if slices.Equal(a, other) {
		t.Error("another seed gave the same order")
	}
	slices.Sort(a)
	for i, c := range a {
		if i != c {
			t.Fatalf("client %d is missing", i)
		}
	}
}

func TestRampUpIsEven(t *testing.T) {
	for position, want := range []time.Duration{0, 2500, 5000, 7500} {
		if got := delay(10*time.Second, position, 4); got != want*time.Millisecond {
			t.Errorf("client %d starts after %v, want %v", position, got, want*time.Millisecond)
		}
	}
	if got := delay(0, 99, 100); got != 0 {
		t.Errorf("without ramp-up the last client starts after %v", got)
	}
}

func TestJudge(t *testing.T) {
	tests := []struct {
		status  int
		body    string
		outcome history.Outcome
		reason  string
	}{
		{200, `{"outcome":"sold"}`, history.OK, "sold"},
		{409, `{"outcome":"sold_out"}`, history.Refused, "sold_out"},
		{409, `{"outcome":"fenced"}`, history.Refused, "fenced"},
		{503, `{"outcome":"not_acquired"}`, history.Refused, "not_acquired"},
		{503, `{"outcome":"conflict"}`, history.Refused, "conflict"},
		{503, `{"outcome":"lost"}`, history.Refused, "lost"},
		{503, `{"outcome":"cancelled"}`, history.Refused, "cancelled"},
		{503, `{"outcome":"unavailable","backend":"redis"}`, history.Refused, "unavailable"},
		{500, `{"outcome":"unknown"}`, history.Unknown, "unknown"},
		{400, `{"outcome":"bad_request"}`, history.Refused, "bad_request"},
		{403, `{"outcome":"forbidden"}`, history.Refused, "forbidden"},
		{404, `{"outcome":"unknown_product"}`, history.Refused, "unknown_product"},
		// Each of these answers contradicts itself, or another program sent it.
		{500, `{"outcome":"sold"}`, history.Unknown, "sold"},
		{200, `{"outcome":"sold_out"}`, history.Unknown, "sold_out"},
		{503, `{"outcome":"new_word"}`, history.Unknown, "new_word"},
		{418, `{"outcome":"new_word"}`, history.Refused, "new_word"},
		{502, `<html>Bad Gateway</html>`, history.Unknown, "not_understood"},
		{504, ``, history.Unknown, "not_understood"},
		{404, `404 page not found`, history.Refused, "not_understood"},
		{200, `<html>It works!</html>`, history.Unknown, "not_understood"},
		{200, `{}`, history.Unknown, "not_understood"},
		{200, `{"outcome":7}`, history.Unknown, "not_understood"},
		{301, ``, history.Unknown, "not_understood"},
	}
	for _, tt := range tests {
		var op history.Op
		recordAnswer(&op, tt.status, []byte(tt.body))
		if op.Outcome != tt.outcome || op.Reason != tt.reason || op.Status != tt.status {
			t.Errorf("%d %s: %v %s, want %v %s", tt.status, tt.body, op.Outcome, op.Reason, tt.outcome, tt.reason)
		}
		if tt.reason == "not_understood" && !strings.HasPrefix(op.Detail, "HTTP ") {
			t.Errorf("%d %s: detail %q names no status", tt.status, tt.body, op.Detail)
		}
	}
}

func TestJudgeKeepsTheDetail(t *testing.T) {
	var op history.Op
	recordAnswer(&op, 503, []byte(`{"outcome":"unavailable","backend":"redis","detail":"dial tcp: refused","replica":"replica-3","owner":"replica-3-1","waited_ms":2.5,"retries":4}`))
	if op.Backend != "redis" || op.Detail != "dial tcp: refused" || op.Replica != "replica-3" || op.Owner != "replica-3-1" || op.Waited != 2500*time.Microsecond || op.Retries != 4 {
		t.Errorf("%+v", op)
	}
	recordAnswer(&op, 409, []byte(`{"outcome":"sold_out","detail":"nothing left"}`))
	long := strings.Repeat("x", 500)
	recordAnswer(&op, 502, []byte(long))
	if len(op.Detail) > 200 {
		t.Errorf("detail of %d bytes", len(op.Detail))
	}
}

func TestTLS(t *testing.T) {
	var requests atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		_, _ = w.Write([]byte(`{"outcome":"sold"}`))
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	p := valid()
	p.Target = server.URL
	_, req, err := p.request()
	if err != nil {
		t.Fatal(err)
	}
	var active atomic.Int64
	distrusting := &client{plan: p, request: req, start: time.Now(), active: &active}
	if op, _ := distrusting.send(t.Context(), 0); op.Reason != history.Unreachable || requests.Load() != 0 {
		t.Errorf("the certificate is not trusted: %+v", op)
	}
	req.roots = x509.NewCertPool()
	req.roots.AddCert(server.Certificate())
	trusting := &client{plan: p, request: req, start: time.Now(), active: &active}
	defer trusting.disconnect()
	for range 2 {
		if op, _ := trusting.send(t.Context(), 0); op.Outcome != history.OK || op.BytesIn == 0 {
			t.Errorf("over TLS: %+v", op)
		}
	}
}

func TestEndlessAnswerIsCutShort(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		chunk := make([]byte, 64<<10)
		for {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	p := valid()
	p.Target, p.Clients, p.Loops = server.URL, 1, 2
	h, err := Run(t.Context(), p, nil)
	if err != nil || len(h.Ops) != 2 {
		t.Fatalf("%d operations, %v", len(h.Ops), err)
	}
	for _, op := range h.Ops {
		if op.Outcome != history.Unknown || op.Detail != errTooLong.Error() {
			t.Errorf("%+v", op)
		}
	}
}
