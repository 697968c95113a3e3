package rig_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"oversell/lab/backend"
	"oversell/lab/rig/rigtest"
)

// TestDisk checks that a server with Config.Disk answers no write before the sync has taken that time.
func TestDisk(t *testing.T) {
	const slow = 50 * time.Millisecond
	cfg := everything()
	cfg.Nginx, cfg.Replicas, cfg.Redis, cfg.Fsync, cfg.Disk = false, 0, 1, true, slow
	addrs := rigtest.Start(t, cfg).Addresses()
	mysqlWrite(t, addrs.MySQL)
	for name, write := range map[string]func(){
		"mysql": func() {
			must(t, backend.ExecuteMySQL(t.Context(), addrs.MySQL, "REPLACE INTO kept VALUES (UUID_SHORT())"))
		},
		"redis":     func() { redisWrite(t, addrs.Redis[0]) },
		"zookeeper": func() { zkWrite(t, addrs.Zookeeper) },
		"etcd": func() {
			answer, err := http.Post("http://"+addrs.Etcd[0]+"/v3/kv/put", "", strings.NewReader(`{"key": "Zm9v"}`)) //nolint:noctx // ends at once
			must(t, err)
			must(t, answer.Body.Close())
		},
	} {
		shortest := time.Minute // of several, as this machine's own disk may be slow
		for range 3 {
			began := time.Now()
			write()
			shortest = min(shortest, time.Since(began))
		}
		if shortest < slow {
			t.Errorf("%s answered a write after %s, although a sync takes %s longer", name, shortest, slow)
		}
	}
}
