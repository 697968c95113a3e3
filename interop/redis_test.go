package interop

import (
	"strconv"
	"testing"

	"oversell/locks/redislock"
)

// onRedis returns the side of the strategy redis, which is compatible with Redisson's RLock.
func onRedis(t *testing.T) side {
	t.Helper()
	url := servers.Addresses().Redis[0]
	client, err := redislock.Open(url, 16)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return side{
		strategy: "redis", address: url, locker: redislock.Redis(client, lease),
		// Only a waiter subscribes to the channel of the lock.
		waiting: func(t *testing.T, key string) bool {
			t.Helper()
			channel := "redisson_lock__channel:{redis:" + key + "}"
			subscribers, err := client.PubSubNumSub(t.Context(), channel).Result()
			if err != nil {
				t.Fatal(err)
			}
			return subscribers[channel] > 0
		},
		free: func(t *testing.T, key string) bool {
			t.Helper()
			there, err := client.Exists(t.Context(), "redis:"+key).Result()
			if err != nil {
				t.Fatal(err)
			}
			return there == 0
		},
		count: strconv.Itoa,
	}
}
