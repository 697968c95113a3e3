package redislock

import (
	"testing"
	"time"
)

// TestOneFailedRenewal cuts the holder off from Redis for less than its lease, until a renewal has
// failed. redis-watchdog then renews again. redis-unrecovered does not, and its lease ends.
func TestOneFailedRenewal(t *testing.T) {
	const lease = 6 * time.Second
	links, clients := viaLinks(t)
	watchdog, unrecovered := newKey(), newKey()
	kept := acquire(t, Watchdog(clients[0], lease), request(watchdog, "holder", 0, 0))
	lost := acquire(t, Unrecovered(clients[0], lease), request(unrecovered, "holder", 0, 0))
	links[0].Cut(true)
	time.Sleep(lease / 2) // a renewal is due every third of the lease
	links[0].Cut(false)
	acquire(t, Unrecovered(one(t), lease), request(unrecovered, "next", 20*time.Second, 0))
	if err := lost.Verify(); err != nil {
		t.Errorf("the holder of redis-unrecovered noticed the end of its lease: %v", err)
	}
	if err := kept.Verify(); err != nil || one(t).PTTL(t.Context(), "redis-watchdog:"+watchdog).Val() <= 0 {
		t.Errorf("redis-watchdog did not renew again: %v", err)
	}
}
