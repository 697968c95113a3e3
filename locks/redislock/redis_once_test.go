package redislock

import (
	"testing"
	"time"
)

// TestRedisOnce checks that the fence counter of a key that is used once expires.
func TestRedisOnce(t *testing.T) {
	c := one(t)
	l := RedisOnce(c, time.Second)
	for range 3 {
		key := newKey()
		_, counter, _ := redisNames(key)
		h, err := l.Acquire(t.Context(), request(key, "owner", 0, 0))
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if life := c.PTTL(t.Context(), counter).Val(); life <= 0 || life > time.Minute {
			t.Errorf("the fence counter lives for %v", life)
		}
	}
}
