package handlers_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"testing"
	"time"

	"oversell/lab/rig/rigtest"
)

// These tests check the read-write lock, semaphore and latch of the tutorial (3.9.5 to 3.9.7), on
// three replicas behind nginx. The tutorial holds a lock for 5 and 10 seconds. These tests hold it
// for one second.
const trialHold = time.Second

var backends = []string{"redis", "zk"}

// answer is the answer to a request that begin has sent in the background, or its error.
type answer struct {
	reply
	err error
}

// begin sends a request in the background. The returned channel receives the answer.
func begin(ctx context.Context, base, path string) <-chan answer {
	answers := make(chan answer, 1)
	go func() {
		r, err := exchange(ctx, http.MethodGet, base, path)
		answers <- answer{r, err}
	}()
	return answers
}

// granted waits for the answer of a request that begin has sent. The status must be 200.
func granted(t *testing.T, request string, answers <-chan answer) reply {
	t.Helper()
	a := <-answers
	if a.err != nil || a.HTTP != http.StatusOK {
		t.Fatalf("%s: %+v, %v", request, a.reply, a.err)
	}
	return a.reply
}

// pass sends a request through nginx and returns the answer. The status must be 200.
func pass(t *testing.T, path string) reply {
	t.Helper()
	return granted(t, path, begin(t.Context(), testLab.Addresses().Target, path))
}

// refused sends a request through nginx. The answer must have this status and outcome.
func refused(t *testing.T, path string, status int, outcome string) {
	t.Helper()
	if r := ask(t, http.MethodGet, testLab.Addresses().Target, path); r.HTTP != status || r.Outcome != outcome {
		t.Errorf("%s: want %d %s, got %+v", path, status, outcome, r)
	}
}

// await repeats a request until its outcome is not_acquired, because another request holds the lock
// or permit.
func await(t *testing.T, path string) {
	t.Helper()
	rigtest.Eventually(t, path+" is rejected", func() (bool, string) {
		r := ask(t, http.MethodGet, testLab.Addresses().Target, path)
		return r.Outcome == "not_acquired", fmt.Sprintf("%+v", r)
	})
}

func locking(what, backend, name string, hold time.Duration) string {
	return fmt.Sprintf("/test/%s?backend=%s&name=%s&hold=%v", what, backend, name, hold)
}

func TestReadersAndWriters(t *testing.T) {
	t.Parallel()
	for _, backend := range backends {
		t.Run(backend, func(t *testing.T) {
			half := float64(trialHold.Milliseconds()) / 2
			together := func(what string) (first, second reply) {
				a := begin(t.Context(), testLab.Addresses().Target, locking(what, backend, "together", trialHold))
				b := begin(t.Context(), testLab.Addresses().Target, locking(what, backend, "together", trialHold))
				first, second = granted(t, what, a), granted(t, what, b)
				if first.WaitedMS > second.WaitedMS {
					first, second = second, first
				}
				return first, second
			}
			began := time.Now()
			if _, writer := together("write"); time.Since(began) < 2*trialHold {
				t.Errorf("two writers, each for %v, took only %v; the second waited %v ms", trialHold, time.Since(began), writer.WaitedMS)
			}
			rigtest.Eventually(t, "two readers hold the lock together", func() (bool, string) {
				_, reader := together("read")
				return reader.WaitedMS < half, fmt.Sprintf("the second waited %v ms for a hold of %v", reader.WaitedMS, trialHold)
			})
			for _, c := range []struct{ first, second string }{{"write", "read"}, {"read", "write"}} {
				name := c.first + "-then-" + c.second
				began := time.Now()
				first := begin(t.Context(), testLab.Addresses().Target, locking(c.first, backend, name, trialHold))
				await(t, locking("write", backend, name, 0)+"&wait=0s")
				if second := pass(t, locking(c.second, backend, name, 0)); time.Since(began) < trialHold {
					t.Errorf("%s: the second acquired it after %v, during a hold of %v; it waited %v ms", name, time.Since(began), trialHold, second.WaitedMS)
				}
				granted(t, c.first, first)
			}
		})
	}
}

// TestDowngradeAndUpgrade checks that the holder of the write lock can also acquire the read lock.
// A holder of the read lock must not get the write lock.
func TestDowngradeAndUpgrade(t *testing.T) {
	restock(t, 10)
	for _, backend := range backends {
		if r := pass(t, locking("write", backend, "nested", 0)+"&then=read&wait=5s"); r.Then != "read" || r.Outcome != "held" {
			t.Errorf("%s: a writer that reads: %+v", backend, r)
		}
		refused(t, locking("read", backend, "nested", 0)+"&then=write&wait=5s", http.StatusConflict, "upgrade")
		// The two requests above have released their locks, so a writer need not wait.
		pass(t, locking("write", backend, "nested", 0)+"&wait=0s")
	}
}

// TestSemaphoreWaves sends ten requests for three permits. They must get the permits in groups of
// 3, 3, 3 and 1. If the machine stalls, the groups may mix, so one correct attempt is enough. But
// in each attempt, the ten requests must take at least four times as long as one request.
func TestSemaphoreWaves(t *testing.T) {
	t.Parallel()
	for _, backend := range backends {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			semaphoreWaves(t, backend)
		})
	}
}

func semaphoreWaves(t *testing.T, backend string) {
	t.Helper()
	replicas := map[string]int{}
	rigtest.Eventually(t, backend+": waves of 3, 3, 3 and 1", func() (bool, string) {
		var answers []<-chan answer
		began := time.Now()
		for range 10 {
			answers = append(answers, begin(t.Context(), testLab.Addresses().Target, locking("semaphore", backend, "waves", trialHold)+"&permits=3"))
		}
		waves := make([]int, 11)
		var waited []float64
		for _, p := range answers {
			r := granted(t, backend+" semaphore", p)
			waited = append(waited, r.WaitedMS)
			replicas[r.Replica]++
			waves[min(10, int(math.Round(r.WaitedMS/float64(trialHold.Milliseconds()))))]++
		}
		if took := time.Since(began); took < 4*trialHold {
			t.Errorf("%s: ten holds of %v on three permits took only %v", backend, trialHold, took)
		}
		slices.Sort(waited)
		return slices.Equal(waves[:5], []int{3, 3, 3, 1, 0}), fmt.Sprintf("waves of %v; they waited %v ms", waves, waited)
	})
	if len(replicas) != 3 {
		t.Errorf("%s: only %v answered", backend, replicas)
	}
	taken := begin(t.Context(), testLab.Addresses().Target, locking("semaphore", backend, "sizes", trialHold)+"&permits=1")
	await(t, locking("semaphore", backend, "sizes", 0)+"&permits=1&wait=0s")
	refused(t, locking("semaphore", backend, "sizes", 0)+"&permits=2&wait=0s", http.StatusConflict, "mismatch")
	granted(t, backend+" semaphore", taken)
}

// TestLatchOpensAtTheSixth checks that a latch with the count 6 opens at the sixth countdown, not
// at the fifth. The countdowns go through different replicas, one of which is killed.
func TestLatchOpensAtTheSixth(t *testing.T) {
	restock(t, 10)
	replicas := testLab.Addresses().Replicas
	monitor := begin(t.Context(), replicas[0], "/test/latch?name=classroom&count=6&wait=60s")
	await(t, "/test/latch?name=classroom&wait=0s")
	for i, through := range []int{0, 1, 2, 0, 1} {
		r := ask(t, http.MethodGet, replicas[through], "/test/countdown?name=classroom")
		if r.HTTP != http.StatusOK || r.Outcome != "counted" || r.Left != 5-i || r.Set {
			t.Fatalf("countdown %d: %+v", i+1, r)
		}
		if i == 2 {
			server(t, "replica-3").Kill()
		}
	}
	// Send this request to a running replica: nginx may still send requests to the killed replica.
	if r := ask(t, http.MethodGet, replicas[1], "/test/latch?name=classroom&wait=300ms"); r.HTTP != http.StatusServiceUnavailable || r.Outcome != "not_acquired" {
		t.Errorf("before the sixth: %+v", r)
	}
	select {
	case a := <-monitor:
		t.Fatalf("the waiter returned after five of six countdowns: %+v, %v", a.reply, a.err)
	default:
	}
	if err := server(t, "replica-3").Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := ask(t, http.MethodGet, replicas[2], "/test/countdown?name=classroom"); r.Outcome != "opened" || r.Left != 0 || r.Set {
		t.Errorf("the sixth: %+v", r)
	}
	if r := granted(t, "the monitor", monitor); r.Outcome != "opened" || r.WaitedMS == 0 {
		t.Errorf("the monitor: %+v", r)
	}
	// As in the tutorial, the seventh countdown starts a new latch. The answer has "set":true.
	if r := ask(t, http.MethodGet, replicas[0], "/test/countdown?name=classroom"); r.Left != 5 || !r.Set {
		t.Errorf("the seventh: %+v", r)
	}
}
