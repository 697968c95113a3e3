package handlers_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"oversell/api"
	"oversell/lab/rig/rigtest"
	"oversell/locks/catalog"
)

func lockPath(strategy, name, owner string, more ...string) string {
	return "/test/lock?" + strings.Join(append([]string{"strategy=" + strategy, "name=" + name, "owner=" + owner}, more...), "&")
}

func unlockPath(strategy, name, owner string) string {
	return strings.Replace(lockPath(strategy, name, owner), "/test/lock", "/test/unlock", 1)
}

func strategiesByHand() []string {
	return []string{"redis", "redis-fair", "redis-multi", "zk", "db-row", "get-lock"}
}

// TestLockByHand: an owner locks twice and must unlock twice. No other owner can lock or unlock it.
func TestLockByHand(t *testing.T) {
	// For some seconds, nginx sends nothing to a replica that has failed in an earlier test.
	rigtest.Eventually(t, "nginx sends the owners to several replicas", func() (bool, string) {
		replicas := map[string]bool{}
		for i := range 8 {
			owner := fmt.Sprintf("owner-%d", i)
			pass(t, lockPath("redis", "balanced", owner))
			replicas[pass(t, unlockPath("redis", "balanced", owner)).Replica] = true
		}
		return len(replicas) > 1, fmt.Sprint(replicas)
	})
	for _, strategy := range strategiesByHand() {
		t.Run(strategy, func(t *testing.T) {
			replicas := map[string]bool{}
			for i := range 8 {
				owner := fmt.Sprintf("owner-%d", i)
				for count := 1; count <= 2; count++ {
					if r := pass(t, lockPath(strategy, "hand", owner)); r.Outcome != string(api.Locked) || r.Count != count {
						t.Errorf("lock number %d of %s: %+v", count, owner, r)
					}
				}
				refused(t, unlockPath(strategy, "hand", "stranger"), http.StatusConflict, "not_held")
				refused(t, lockPath(strategy, "hand", "stranger", "wait=0s"), http.StatusServiceUnavailable, "not_acquired")
				for count := 1; count >= 0; count-- {
					r := pass(t, unlockPath(strategy, "hand", owner))
					if r.Outcome != string(api.Unlocked) || r.Count != count {
						t.Errorf("unlock of %s, with %d left: %+v", owner, count, r)
					}
					replicas[r.Replica] = true
				}
				refused(t, unlockPath(strategy, "hand", owner), http.StatusConflict, "not_held")
			}
			if len(replicas) < 2 {
				t.Errorf("eight owners locked on %v only", replicas)
			}
		})
	}
}

// TestEveryLockByHand: each strategy that is a lock can be locked and unlocked, also those that know no owner.
func TestEveryLockByHand(t *testing.T) {
	t.Parallel()
	for _, card := range catalog.Cards() {
		lock, unlock := lockPath(card.ID, "every", "A"), unlockPath(card.ID, "every", "A")
		if !card.Locker {
			refused(t, lock, http.StatusBadRequest, "bad_request")
			continue
		}
		if r := pass(t, lock); r.Count != 1 {
			t.Errorf("%s: %+v", lock, r)
		}
		refused(t, unlockPath(card.ID, "every", "B"), http.StatusConflict, "not_held")
		if card.Safe && !card.Reentrant { // it waits for itself
			refused(t, lock+"&wait=0s", http.StatusServiceUnavailable, "not_acquired")
		}
		if r := pass(t, unlock); r.Count != 0 {
			t.Errorf("%s: %+v", unlock, r)
		}
		refused(t, unlock, http.StatusConflict, "not_held")
		pass(t, lockPath(card.ID, "every", "B"))
		pass(t, unlockPath(card.ID, "every", "B"))
	}
}

// TestSeveralNamesByHand: an owner locks all names or none, and one unlock frees them all.
func TestSeveralNamesByHand(t *testing.T) {
	t.Parallel()
	for _, strategy := range []string{"redis-multi", "zk-multi"} {
		lock := lockPath(strategy, "a", "A") + "&also=b,c"
		held := pass(t, lock)
		if !slices.Equal(held.Also, []string{"b", "c"}) {
			t.Errorf("%s: %+v", lock, held)
		}
		for _, taken := range []string{lockPath(strategy, "c", "B"), lockPath(strategy, "d", "B") + "&also=b"} {
			refused(t, taken+"&wait=0s", http.StatusServiceUnavailable, "not_acquired")
		}
		pass(t, lockPath(strategy, "d", "C", "wait=5s")) // the refused request has left no lock
		pass(t, unlockPath(strategy, "d", "C"))
		refused(t, unlockPath(strategy, "c", "A"), http.StatusConflict, "not_held")
		pass(t, unlockPath(strategy, "a", "A"))
		pass(t, lockPath(strategy, "c", "B", "also=b,a", "wait=5s"))
		pass(t, unlockPath(strategy, "c", "B"))
	}
}

// TestReadWriteByHand: write then write, read then read, and write then read by one owner. A reader cannot become a
// writer, and each lock has an unlock of its own.
func TestReadWriteByHand(t *testing.T) {
	t.Parallel()
	for _, backend := range backends {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			path := func(what, owner string) string {
				return fmt.Sprintf("/test/%s?backend=%s&name=rw&owner=%s", what, backend, owner)
			}
			counted := func(what string, count int) {
				t.Helper()
				if r := pass(t, path(what, "A")); r.Count != count {
					t.Errorf("%s: %+v, want the count %d", what, r, count)
				}
			}
			counted("write/lock", 1)
			counted("write/lock", 2)
			counted("read/lock", 1)
			refused(t, path("read/lock", "B")+"&wait=0s", http.StatusServiceUnavailable, "not_acquired")
			refused(t, path("write/unlock", "B"), http.StatusConflict, "not_held")
			counted("write/unlock", 1)
			refused(t, path("read/lock", "B")+"&wait=0s", http.StatusServiceUnavailable, "not_acquired")
			counted("write/unlock", 0) // a downgrade: A still reads
			pass(t, path("read/lock", "B")+"&wait=5s")
			counted("read/lock", 2)
			refused(t, path("write/lock", "A"), http.StatusConflict, "upgrade")
			refused(t, path("write/unlock", "A"), http.StatusConflict, "not_held")
			pass(t, path("read/unlock", "B"))
			counted("read/unlock", 1)
			refused(t, path("write/lock", "B")+"&wait=0s", http.StatusServiceUnavailable, "not_acquired")
			counted("read/unlock", 0)
			refused(t, path("read/unlock", "A"), http.StatusConflict, "not_held")
			pass(t, path("write/lock", "B")+"&wait=5s")
			pass(t, path("write/unlock", "B"))
			if backend == "redis" { // the only one with a lease per request
				pass(t, path("write/lock", "C")+"&wait=5s&lease=500ms")
				pass(t, path("read/lock", "D")+"&wait=30s&lease=500ms")
				refused(t, path("write/unlock", "C"), http.StatusGone, "expired")
				pass(t, path("write/lock", "E")+"&wait=30s")
				pass(t, path("write/unlock", "E"))
			}
		})
	}
}

// TestSemaphoreByHand: each release gives back the permits of one acquire, and of no other owner.
func TestSemaphoreByHand(t *testing.T) {
	t.Parallel()
	for _, backend := range backends {
		path := func(what, owner string) string {
			return fmt.Sprintf("/test/semaphore/%s?backend=%s&name=permits&owner=%s", what, backend, owner)
		}
		acquire := func(owner string) string { return path("acquire", owner) + "&permits=3" }
		pass(t, acquire("A")+"&qty=2")
		if r := pass(t, acquire("A")); r.Count != 2 {
			t.Errorf("a second permit: %+v", r)
		}
		refused(t, acquire("B")+"&wait=0s", http.StatusServiceUnavailable, "not_acquired")
		refused(t, path("release", "B"), http.StatusConflict, "not_held")
		waiting := begin(t.Context(), testLab.Addresses().Target, acquire("B"))
		pass(t, path("release", "A"))
		granted(t, "B, after the release", waiting)
		refused(t, acquire("C")+"&wait=0s", http.StatusServiceUnavailable, "not_acquired")
		refused(t, path("acquire", "C")+"&permits=4&wait=0s", http.StatusConflict, "mismatch")
		pass(t, path("release", "A"))
		pass(t, acquire("C")+"&qty=2&wait=5s")
		pass(t, path("release", "C"))
		pass(t, path("release", "B"))
		refused(t, path("release", "B"), http.StatusConflict, "not_held")
	}
	// When the lease of one permit has ended, the owner still has the other one.
	of := "?name=leased-permits&owner="
	pass(t, "/test/semaphore/acquire"+of+"A&permits=2&lease=60s")
	pass(t, "/test/semaphore/acquire"+of+"A&permits=2&lease=300ms")
	pass(t, "/test/semaphore/acquire"+of+"B&permits=2&wait=30s")
	refused(t, "/test/semaphore/acquire"+of+"C&permits=2&wait=0s", http.StatusServiceUnavailable, "not_acquired")
	if r := pass(t, "/test/semaphore/release"+of+"A"); r.Count != 0 {
		t.Errorf("the release of the last permit: %+v", r)
	}
	pass(t, "/test/semaphore/release"+of+"B")
}

// TestCountInTheHash checks that the hash in Redis has Redisson's count of the holder.
func TestCountInTheHash(t *testing.T) {
	client := singleRedis(t)
	for strategy, keys := range map[string][]string{
		"redis": {"redis:counted"}, "redis-fair": {"redis-fair:counted"},
		"redis-multi": {"redis:redis-multi:counted", "redis:redis-multi:counted:warehouse"},
	} {
		counts := func(want ...string) {
			t.Helper()
			for _, key := range keys {
				fields, err := client.HGetAll(t.Context(), key).Result()
				must(t, err)
				var got []string
				for _, count := range fields {
					got = append(got, count)
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s: the hash %s has %v, want %v", strategy, key, fields, want)
				}
			}
		}
		pass(t, lockPath(strategy, "counted", "A"))
		counts("1")
		pass(t, lockPath(strategy, "counted", "A"))
		counts("2")
		pass(t, unlockPath(strategy, "counted", "A"))
		counts("1")
		pass(t, unlockPath(strategy, "counted", "A"))
		counts()
	}
}

// TestLeaseByHand: with a lease the lock ends by itself, and a waiter gets it (tryLock(wait, lease)).
// Without one the watchdog renews the lock. All strategies wait at the same time.
func TestLeaseByHand(t *testing.T) {
	t.Parallel()
	const lease = 1500 * time.Millisecond
	strategies := []string{"redis", "redis-fair", "redis-multi", "db-row"}
	for _, strategy := range strategies {
		pass(t, lockPath(strategy, "leased", "A", "lease=1500ms"))
		pass(t, lockPath(strategy, "renewed", "A"))
	}
	began := time.Now()
	var leased, renewed []<-chan answer
	for _, strategy := range strategies {
		leased = append(leased, begin(t.Context(), testLab.Addresses().Target, lockPath(strategy, "leased", "B", "lease=60s", "wait=100s")))
		// The default lease is 10 s.
		renewed = append(renewed, begin(t.Context(), testLab.Addresses().Target, lockPath(strategy, "renewed", "B", "wait=11s")))
	}
	for i, strategy := range strategies {
		next := granted(t, strategy, leased[i])
		if waited := time.Since(began); waited > 30*time.Second || next.Count != 1 {
			t.Errorf("%s: the next owner waited %v for a lease of %v: %+v", strategy, waited, lease, next)
		}
		refused(t, unlockPath(strategy, "leased", "A"), http.StatusGone, "expired")
		pass(t, unlockPath(strategy, "leased", "B"))
	}
	for i, strategy := range strategies {
		if a := <-renewed[i]; a.err != nil || a.HTTP != http.StatusServiceUnavailable || a.Outcome != "not_acquired" {
			t.Errorf("%s: a lock that is renewed was acquired: %+v, %v", strategy, a.reply, a.err)
		}
		pass(t, unlockPath(strategy, "renewed", "A"))
	}
}

// TestBadInputByHand checks the parameters that only these routes have.
func TestBadInputByHand(t *testing.T) {
	for path, parameter := range map[string]string{
		"/test/lock": "owner", "/test/lock?owner=": "owner", "/test/lock?owner=a&strategy=none": "strategy",
		"/test/lock?owner=a&strategy=zk&lease=5s": "lease", "/test/lock?owner=a&wait=121s": "wait",
		"/test/lock?owner=a&also=b": "also", "/test/lock?owner=a&strategy=redis-multi&also=": "also",
		"/test/lock?owner=a&strategy=redis-multi&also=a,b,c,d,e,f,g,h,i": "also", "/test/lock?owner=a&name=b,c": "name",
		"/test/read/lock?owner=a&backend=zk&lease=5s": "lease", "/test/write/lock?owner=a&wait=121s": "wait",
		"/test/unlock?owner=a&also=b": "also", "/test/read/lock?owner=a&backend=mysql": "backend",
		"/test/unlock?owner=a&lease=5s": "lease",
	} {
		if r := ask(t, http.MethodGet, testLab.Addresses().Target, path); r.HTTP != http.StatusBadRequest || r.Parameter != parameter {
			t.Errorf("%s: want a 400 on %s, got %+v", path, parameter, r)
		}
	}
	body, err := http.PostForm(testLab.Addresses().Target+"/test/lock", url.Values{"owner": {"a"}}) //nolint:noctx // a loopback address
	must(t, err)
	defer func() { _ = body.Body.Close() }()
	if body.StatusCode != http.StatusBadRequest {
		t.Errorf("an owner in the body, which nginx cannot read: %s", body.Status)
	}
}

// TestRealDowngrade: after the downgrade, another reader holds the lock at the same time, and a
// writer waits for both (4.6.3).
func TestRealDowngrade(t *testing.T) {
	t.Parallel()
	for _, backend := range backends {
		t.Run(backend, func(t *testing.T) {
			at := "?name=down&backend=" + backend
			holder := begin(t.Context(), testLab.Addresses().Target, "/test/write"+at+"&then=read&downgrade=true&hold=3s")
			await(t, "/test/write"+at+"&hold=0s&wait=0s")
			reader := pass(t, "/test/read"+at+"&hold=0s&wait=2s")
			select {
			case a := <-holder:
				t.Errorf("the reader waited for the end of the holder: %+v, %+v", reader, a)
			default:
			}
			refused(t, "/test/write"+at+"&hold=0s&wait=0s", http.StatusServiceUnavailable, "not_acquired")
			if r := granted(t, "downgrade", holder); !r.Downgraded || r.Then != "read" {
				t.Errorf("the downgrade: %+v", r)
			}
			pass(t, "/test/write"+at+"&hold=0s")
		})
	}
}

// TestCompareVersion: a change back to the same value changes the version (4.6.7).
func TestCompareVersion(t *testing.T) {
	restock(t, 10)
	counter := func(query string) reply { return pass(t, "/test/counter?name=versions&"+query) }
	seen := counter("op=force-set&value=7").Version
	counter("op=increment")
	counter("op=decrement")
	late := counter(fmt.Sprintf("op=compare-version&value=9&version=%d", seen))
	if now := counter("op=get"); late.Succeeded || now.Value != 7 {
		t.Errorf("compare-version with an old version: %+v, then %+v", late, now)
	}
	if r := counter(fmt.Sprintf("op=compare-version&value=9&version=%d", late.Version)); !r.Succeeded || r.After != 9 || r.Before != 7 {
		t.Errorf("compare-version with the newest version: %+v", r)
	}
	if r := pass(t, "/test/counter?name=fresh&op=compare-version&value=3&version=0"); !r.Succeeded {
		t.Errorf("the first compare-version of a counter: %+v", r)
	}
}

// TestMixedStock: after a sale by a strategy that holds stock outside the row, the answers of other
// strategies warn and name the reset, on all replicas. After the reset, they do not.
func TestMixedStock(t *testing.T) {
	holders := []string{"buckets", "redis-stock"}
	if rigtest.IsNightly() {
		holders = append(holders, "skip-locked", "redis-watch")
	}
	for _, holder := range holders {
		restock(t, 10)
		if r := buy(t, holder); r.HTTP != http.StatusOK || r.Warning != "" {
			t.Errorf("%s alone: %+v", holder, r)
		}
		for _, replica := range testLab.Addresses().Replicas {
			rigtest.Eventually(t, "a warning of "+replica, func() (bool, string) { // a replica checks a few times a second
				r := ask(t, http.MethodGet, replica, checkLock("redis"))
				return strings.Contains(r.Warning, holder) && strings.Contains(r.Warning, "PUT /stock/1?count=5000"), fmt.Sprintf("%+v", r)
			})
		}
		restock(t, 10)
		time.Sleep(1100 * time.Millisecond) // so that the next sales check again
		for range 3 {
			if r := buy(t, "redis"); r.HTTP != http.StatusOK || r.Warning != "" {
				t.Errorf("after the reset from %s: %+v", holder, r)
			}
		}
	}
}

// TestReplicaReleasesKept: a replica that ends releases the locks by hand, so nobody waits for their
// leases.
func TestReplicaReleasesKept(t *testing.T) {
	held := pass(t, lockPath("redis", "ending", "A"))
	stopped := server(t, held.Replica)
	must(t, stopped.Stop(t.Context()))
	t.Cleanup(func() { must(t, stopped.Start(context.WithoutCancel(t.Context()))) })
	for i, replica := range testLab.Addresses().Replicas {
		if fmt.Sprintf("replica-%d", i+1) == held.Replica {
			continue
		}
		began := time.Now()
		r := ask(t, http.MethodGet, replica, lockPath("redis", "ending", "B", "wait=60s"))
		if r.HTTP != http.StatusOK || time.Since(began) > 8*time.Second {
			t.Errorf("after the end of %s, the lock was acquired after %v: %+v", held.Replica, time.Since(began), r)
		}
		if r := ask(t, http.MethodGet, replica, unlockPath("redis", "ending", "B")); r.HTTP != http.StatusOK {
			t.Errorf("unlock: %+v", r)
		}
		return
	}
}
