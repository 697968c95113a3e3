package suggest

import "testing"

func TestNearest(t *testing.T) {
	names := []string{"none", "mutex", "for-update", "redis", "redis-setnx", "redlock", "zk", "pause", "pause-at-read", "crash"}
	for wanted, want := range map[string]string{
		"rediss": "redis", "redlok": "redlock", "puase": "pause", "Redis": "redis", "mutx": "mutex", "zkk": "zk",
		"setnx": "redis-setnx", "for_update": "for-update", "pause-at": "pause-at-read", "none": "none",
		"prayer": "", "": "", "xyz": "", "q": "",
	} {
		if got := Nearest(wanted, names); got != want {
			t.Errorf("%q: %q, want %q", wanted, got, want)
		}
	}
}

func TestUnknown(t *testing.T) {
	for wanted, want := range map[string]string{
		"rediss": `strategy "rediss" does not exist; did you mean "redis"?`,
		"prayer": `strategy "prayer" does not exist; choose one of none, redis`,
	} {
		if got := (&Unknown{"strategy", wanted, []string{"none", "redis"}}).Error(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
