package comparison_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oversell/api"
	"oversell/lab/comparison"
	"oversell/lab/load"
	"oversell/lab/measure"
)

// fakeService gives the answers of a replica, correct or not. The tests of package cli use the real
// service.
type fakeService struct {
	mu       sync.Mutex
	token    string
	count    int
	version  int
	sales    int // requests since the last reset
	warnings []string
	flushes  int
	deduct   func(s *fakeService, w http.ResponseWriter, strategy string)
	onReset  func(s *fakeService)
	onRead   func(s *fakeService, w http.ResponseWriter) (handled bool)
}

func (s *fakeService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.URL.Path == "/strategies":
		reply(w, 200, []map[string]any{{"id": "none", "safe": false, "core": true}, {"id": "redis", "safe": true, "core": true}, {"id": "zk", "safe": true, "core": true}, {"id": "redis-setnx", "safe": true, "slow": true}})
	case r.URL.Path == "/stock/1" && r.Method == http.MethodPut:
		s.put(w, r)
	case r.URL.Path == "/stock/1":
		if s.onRead == nil || !s.onRead(s, w) {
			reply(w, 200, map[string]any{"id": 1, "count": s.count, "version": s.version, "fence": 0, "flushes": s.flushes})
		}
	case r.URL.Path == "/check/lock":
		s.sales++
		s.deduct(s, w, r.URL.Query().Get("strategy"))
	default:
		http.NotFound(w, r)
	}
}

func (s *fakeService) put(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("X-Lab-Token") != s.token {
		reply(w, 403, map[string]any{"outcome": "forbidden", "detail": "wrong token"})
		return
	}
	var body struct{ Count int }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		reply(w, 400, map[string]any{"outcome": "bad_request"})
		return
	}
	s.count, s.version, s.sales = body.Count, s.version+1, 0
	after := s.version
	if s.onReset != nil {
		s.onReset(s)
	}
	reply(w, 200, map[string]any{"id": 1, "count": body.Count, "version": after, "fence": 0, "warnings": s.warnings})
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func sell(s *fakeService, w http.ResponseWriter, _ string) {
	if s.count == 0 {
		reply(w, 409, map[string]any{"outcome": "sold_out", "replica": "replica-1"})
		return
	}
	s.count--
	s.version++
	reply(w, 200, map[string]any{"outcome": "sold", "replica": "replica-1", "remaining": s.count})
}

// sellBadly loses every second update of the strategy none.
func sellBadly(s *fakeService, w http.ResponseWriter, strategy string) {
	if strategy == "none" && s.sales%2 == 0 {
		s.count++
	}
	sell(s, w, strategy)
}

func start(t *testing.T, s *fakeService) (*fakeService, comparison.Plan) {
	t.Helper()
	if s.deduct == nil {
		s.deduct = sellBadly
	}
	s.token = "a-token"
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, comparison.Plan{
		Plan:  load.Plan{Target: server.URL, Clients: 4, Loops: 5, Wait: time.Second, Seed: 3},
		Token: "a-token", Stock: 20,
		Conditions: measure.Conditions{Machine: measure.Machine{OS: "test"}, Versions: map[string]string{"go": "test"}},
	}
}

// recorder records the calls of a Watcher.
type recorder struct {
	mu     sync.Mutex
	calls  []string
	during func(load.Progress)
}

func (w *recorder) Begin(strategy string, nth, of int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, "begin "+strategy+" "+string(rune('0'+nth))+"/"+string(rune('0'+of)))
}

func (w *recorder) Progress(p load.Progress) {
	if w.during != nil {
		w.during(p)
	}
}

func (w *recorder) End(r measure.Result) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, "end "+r.Strategy)
}

func TestRunComparesAll(t *testing.T) {
	_, plan := start(t, &fakeService{})
	var w recorder
	measurements, err := comparison.Run(t.Context(), plan, &w)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(w.calls, ", "); got != "begin none 1/3, end none, begin redis 2/3, end redis, begin zk 3/3, end zk" {
		t.Errorf("calls: %s", got)
	}
	none, redis := measurements[0].Result, measurements[1].Result
	if none.Sold != 20 || *none.Remaining != 10 || none.LostUpdates != 10 || none.Verdict != api.Broken || none.Safe {
		t.Errorf("none: %+v", none)
	}
	if redis.Sold != 20 || *redis.Remaining != 0 || redis.LostUpdates != 0 || redis.Verdict != api.Holds || !redis.Safe || redis.Errors != 0 {
		t.Errorf("redis: %+v", redis)
	}
	if redis.Machine.OS != "test" || redis.Seed != 3 || redis.Stock != 20 || redis.WaitMS != 1000 || redis.Partial || redis.Target != plan.Target {
		t.Errorf("the conditions are missing: %+v", redis)
	}
	if len(measurements[1].History.Ops) != 20 {
		t.Errorf("%d operations recorded", len(measurements[1].History.Ops))
	}
}

// TestRunAll checks that slow strategies get a fifth of the requests and of the stock.
func TestRunAll(t *testing.T) {
	_, plan := start(t, &fakeService{})
	plan.All = true
	measurements, err := comparison.Run(t.Context(), plan, &recorder{})
	if err != nil || len(measurements) != 4 {
		t.Fatalf("%d measurements, %v", len(measurements), err)
	}
	if zk := measurements[2].Result; zk.Samples != 20 || zk.Stock != 20 || zk.WaitMS != 1000 {
		t.Errorf("zk: %+v", zk)
	}
	if slow := measurements[3].Result; slow.Samples != 4 || slow.Stock != 4 || slow.Sold != 4 || slow.WaitMS != 60_000 {
		t.Errorf("redis-setnx: %+v", slow)
	}
}

// TestDuring checks that the load goes on until During returns, and that a lock is found that was
// left behind. The service of this test does not sell with zk once During has returned.
func TestDuring(t *testing.T) {
	var done atomic.Bool
	service, plan := start(t, &fakeService{deduct: func(s *fakeService, w http.ResponseWriter, strategy string) {
		if done.Load() && strategy == "zk" {
			reply(w, 503, map[string]any{"outcome": "not_acquired", "detail": "not acquired within 1s"})
			return
		}
		sell(s, w, strategy)
	}})
	sales := func() int {
		service.mu.Lock()
		defer service.mu.Unlock()
		return service.sales
	}
	plan.Stock, plan.Strategies = 1_000_000, []string{"redis", "zk"}
	plan.During = func(ctx context.Context) error {
		done.Store(false)
		for before := sales(); sales() < before+100; time.Sleep(time.Millisecond) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
		done.Store(true)
		return nil
	}
	measurements, err := comparison.Run(t.Context(), plan, &recorder{})
	if err != nil || len(measurements) != 2 {
		t.Fatalf("%d measurements, %v", len(measurements), err)
	}
	redis, zk := measurements[0], measurements[1]
	if redis.Result.Samples < 100 || redis.Result.Errors != 0 || redis.Result.Partial || redis.Result.LostUpdates != 0 || redis.LeftBehind != "" {
		t.Errorf("redis: %+v, left behind: %q", redis.Result, redis.LeftBehind)
	}
	if zk.LeftBehind != "not acquired within 1s" {
		t.Errorf("zk: left behind: %q", zk.LeftBehind)
	}
	plan.During = func(context.Context) error { return errors.New("replica-1 does not start") }
	if _, err := comparison.Run(t.Context(), plan, &recorder{}); err == nil || err.Error() != "replica-1 does not start" {
		t.Errorf("got %v", err)
	}
}

func TestRunKeepsTheWantedOrder(t *testing.T) {
	_, plan := start(t, &fakeService{warnings: []string{"zk: gone", "disk: nearly full"}})
	plan.Strategies = []string{"zk", "none"}
	measurements, err := comparison.Run(t.Context(), plan, &recorder{})
	if err != nil || len(measurements) != 2 || measurements[0].Result.Strategy != "zk" || measurements[1].Result.Strategy != "none" {
		t.Fatalf("%v, %v", measurements, err)
	}
	if w := measurements[0].Result.Warnings; strings.Join(w, ", ") != "zk: gone, disk: nearly full" {
		t.Errorf("zk is warned: %q", w)
	}
	if w := measurements[1].Result.Warnings; strings.Join(w, ", ") != "disk: nearly full" {
		t.Errorf("none is warned: %q", w)
	}
}

func TestUnknownStrategyListsTheValid(t *testing.T) {
	service, plan := start(t, &fakeService{})
	plan.Strategies = []string{"redis", "redlok"}
	_, err := comparison.Run(t.Context(), plan, &recorder{})
	if !errors.Is(err, load.ErrPlan) || !strings.Contains(err.Error(), `"redlok"`) || !strings.Contains(err.Error(), "none, redis, zk") {
		t.Errorf("error %v", err)
	}
	if service.sales != 0 {
		t.Errorf("%d requests sent", service.sales)
	}
}

func TestRunRejectsStockThatWasNotReset(t *testing.T) {
	tests := map[string]struct {
		service *fakeService
		want    string
	}{
		"another client buys":   {&fakeService{onReset: func(s *fakeService) { s.count-- }}, "count 19, version 1"},
		"another client resets": {&fakeService{onReset: func(s *fakeService) { s.version = 7 }}, "version 7"},
		"mysql down": {&fakeService{onRead: func(_ *fakeService, w http.ResponseWriter) bool {
			reply(w, 503, map[string]any{"outcome": "unavailable", "backend": "mysql", "detail": "mysql is unavailable: connection refused"})
			return true
		}}, "mysql is unavailable: connection refused"},
		"not a lab": {&fakeService{onRead: func(_ *fakeService, w http.ResponseWriter) bool {
			_, _ = w.Write([]byte("<html>It works!</html>"))
			return true
		}}, "does not answer like a replica of oversell"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			service, plan := start(t, tt.service)
			measurements, err := comparison.Run(t.Context(), plan, &recorder{})
			if err == nil || !strings.Contains(err.Error(), tt.want) || len(measurements) != 0 || service.sales != 0 {
				t.Errorf("%d measurements, %d requests, error %v", len(measurements), service.sales, err)
			}
		})
	}
}

func TestRejectedTokenNamesTheFlag(t *testing.T) {
	service, plan := start(t, &fakeService{})
	plan.Token = "wrong"
	_, err := comparison.Run(t.Context(), plan, &recorder{})
	if err == nil || !strings.Contains(err.Error(), "rejected the reset") || !strings.Contains(err.Error(), "--token") || !strings.Contains(err.Error(), "LAB_TOKEN") {
		t.Errorf("error %v", err)
	}
	if service.sales != 0 {
		t.Errorf("%d requests sent", service.sales)
	}
}

func TestUnreachableService(t *testing.T) {
	_, plan := start(t, &fakeService{})
	plan.Target = "http://127.0.0.1:1"
	if _, err := comparison.Run(t.Context(), plan, &recorder{}); err == nil || !strings.Contains(err.Error(), "cannot reach the lab") || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("error %v", err)
	}
}

func TestBackendDownShowsInTheTrial(t *testing.T) {
	_, plan := start(t, &fakeService{deduct: func(s *fakeService, w http.ResponseWriter, strategy string) {
		if strategy == "redis" {
			reply(w, 503, map[string]any{"outcome": "unavailable", "backend": "redis", "detail": "dial tcp: connection refused"})
			return
		}
		sell(s, w, strategy)
	}})
	measurements, err := comparison.Run(t.Context(), plan, &recorder{})
	if err != nil || len(measurements) != 3 {
		t.Fatalf("%d measurements, %v", len(measurements), err)
	}
	r := measurements[1].Result
	if r.Errors != 20 || r.Sold != 0 || r.Verdict != api.Inconclusive || r.Cause.EN != "redis is unavailable: 20 of 20 requests" || !strings.Contains(r.Sentence.EN, "because redis was unavailable (dial tcp: connection refused)") {
		t.Errorf("redis: %+v", r)
	}
	if measurements[2].Result.Errors != 0 {
		t.Error("the next strategy was not run as usual")
	}
}

// TestDatabaseRestarts checks that the stock is read again while the database starts.
func TestDatabaseRestarts(t *testing.T) {
	failures := 0
	_, plan := start(t, &fakeService{onRead: func(s *fakeService, w http.ResponseWriter) bool {
		if s.sales == 0 || failures == 2 {
			return false
		}
		failures++
		reply(w, 503, map[string]any{"outcome": "unavailable", "backend": "mysql", "detail": "starting"})
		return true
	}})
	plan.Strategies = []string{"redis"}
	measurements, err := comparison.Run(t.Context(), plan, &recorder{})
	if err != nil || failures != 2 || measurements[0].Result.Verdict != api.Holds {
		t.Errorf("failed %d times, %v, %+v", failures, err, measurements)
	}
}

// A replica may still sell to a disconnected client, so the stock is read until it no longer
// changes.
func TestWaitsForLateSales(t *testing.T) {
	reads := 0
	_, plan := start(t, &fakeService{
		deduct: func(s *fakeService, w http.ResponseWriter, strategy string) {
			if s.sales == 3 {
				reply(w, 500, map[string]any{"outcome": "unknown", "detail": "connection lost during commit"})
				return
			}
			sell(s, w, strategy)
		},
		onRead: func(s *fakeService, _ http.ResponseWriter) bool {
			if s.sales > 0 {
				if reads++; reads == 2 {
					s.count--
				}
			}
			return false
		},
	})
	plan.Strategies = []string{"redis"}
	measurements, err := comparison.Run(t.Context(), plan, &recorder{})
	if err != nil {
		t.Fatal(err)
	}
	if r := measurements[0].Result; reads < 3 || *r.Remaining != 0 || r.Unknown != 1 || r.Verdict != api.Holds {
		t.Errorf("%d reads, %+v", reads, r)
	}
}

func TestStoppedRunReturnsPartialTrial(t *testing.T) {
	_, plan := start(t, &fakeService{})
	plan.Loops, plan.Stock = 100_000, 1_000_000
	ctx, cancel := context.WithCancel(t.Context())
	measurements, err := comparison.Run(ctx, plan, &recorder{during: func(p load.Progress) {
		if p.Done > 0 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || len(measurements) != 1 {
		t.Fatalf("%d measurements, error %v", len(measurements), err)
	}
	r := measurements[0].Result
	if !r.Partial || r.Samples == 0 || r.Samples >= 400_000 || r.Remaining == nil || !strings.Contains(r.Sentence.EN, "stopped early") {
		t.Errorf("%+v", r.Sentence)
	}
}

// If FLUSHALL deletes the locks during a run and updates are lost, the verdict must name the flush.
// The verdict must not call the card's claim broken.
func TestFlushIsNotBlamedOnTheLock(t *testing.T) {
	for _, flushed := range []int{0, 1} {
		_, plan := start(t, &fakeService{flushes: 7, deduct: func(s *fakeService, w http.ResponseWriter, _ string) {
			if s.sales == 10 {
				s.count++
				s.flushes += flushed
			}
			sell(s, w, "")
		}})
		plan.Strategies = []string{"redis"}
		measurements, err := comparison.Run(t.Context(), plan, &recorder{})
		if err != nil {
			t.Fatal(err)
		}
		r := measurements[0].Result
		want := api.Broken
		if flushed > 0 {
			want = api.Inconclusive
		}
		if r.LostUpdates != 1 || r.Flushes != flushed || r.Verdict != want {
			t.Errorf("%d flushes: %s, %d lost, %d flushes", flushed, r.Verdict, r.LostUpdates, r.Flushes)
		}
		for _, text := range []string{r.Sentence.EN, r.Sentence.ZH} {
			blamed := strings.Contains(text, "contradicts the card") || strings.Contains(text, "与卡片不符")
			if named := strings.Contains(text, "FLUSHALL"); named != (flushed > 0) || blamed == named {
				t.Errorf("%d flushes: %s", flushed, text)
			}
		}
	}
}

func TestStockThatCannotBeReadAfterwards(t *testing.T) {
	_, plan := start(t, &fakeService{onRead: func(s *fakeService, w http.ResponseWriter) bool {
		if s.sales == 0 {
			return false
		}
		reply(w, 503, map[string]any{"outcome": "unavailable", "backend": "mysql", "detail": "mysql is unavailable: gone"})
		return true
	}})
	plan.Loops, plan.Stock = 100_000, 1_000_000
	ctx, cancel := context.WithCancel(t.Context()) // after a stop, the read timeout is shorter
	measurements, _ := comparison.Run(ctx, plan, &recorder{during: func(p load.Progress) {
		if p.Done > 0 {
			cancel()
		}
	}})
	if len(measurements) != 1 {
		t.Fatalf("%d measurements", len(measurements))
	}
	r := measurements[0].Result
	if r.Remaining != nil || r.Verdict != api.Inconclusive || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "mysql is unavailable: gone") {
		t.Errorf("%+v", r)
	}
}

func TestValidate(t *testing.T) {
	_, good := start(t, &fakeService{})
	tests := []struct {
		change func(*comparison.Plan)
		want   string
	}{
		{func(p *comparison.Plan) { p.Clients = 0 }, "clients 0: must be 1 to 10000"},
		{func(p *comparison.Plan) { p.Loops = -1 }, "loops -1: must be 1 or more"},
		{func(p *comparison.Plan) { p.Stock = -5 }, "stock -5: must be 0 to 1000000"},
		{func(p *comparison.Plan) { p.Stock = comparison.MaxStock + 1 }, "stock 1000001: must be 0 to 1000000"},
		{func(p *comparison.Plan) { p.Wait = -1 }, "wait -1ns: must be 0s to 1m0s"},
		{func(p *comparison.Plan) { p.Target = "ftp://x" }, `target "ftp://x": must be a URL`},
	}
	for _, tt := range tests {
		p := good
		tt.change(&p)
		_, err := comparison.Run(t.Context(), p, &recorder{})
		if !errors.Is(err, load.ErrPlan) || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("error %v, want %s", err, tt.want)
		}
	}
}
