package redislock

import (
	"slices"
	"strings"
	"testing"
)

func TestAddresses(t *testing.T) {
	for address, want := range map[string]struct {
		hosts                  []string
		user, password, master string
		db                     int
		cluster, tls           bool
		sentinel               string
	}{
		"redis://127.0.0.1:7000":                          {hosts: []string{"127.0.0.1:7000"}},
		"redis://host/2":                                  {hosts: []string{"host:6379"}, db: 2},
		"redis://:p%40ss@host:1/0":                        {hosts: []string{"host:1"}, password: "p@ss"},
		"redis://user:pass@[::1]/1":                       {hosts: []string{"[::1]:6379"}, user: "user", password: "pass", db: 1},
		"rediss://user:pass@host":                         {hosts: []string{"host:6379"}, user: "user", password: "pass", tls: true},
		"redis-sentinel://:pass@a,b:2,c/main":             {hosts: []string{"a:26379", "b:2", "c:26379"}, password: "pass", master: "main"},
		"rediss-sentinel://a/main/3?sentinel=guard:other": {hosts: []string{"a:26379"}, master: "main", db: 3, tls: true, sentinel: "guard:other"},
		"redis-cluster://a:1, b:2":                        {hosts: []string{"a:1", "b:2"}, cluster: true},
		"rediss-cluster://u:p@a:1/":                       {hosts: []string{"a:1"}, user: "u", password: "p", cluster: true, tls: true},
	} {
		o, err := Options(address)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		sentinel := strings.Trim(o.SentinelUsername+":"+o.SentinelPassword, ":")
		if !slices.Equal(o.Addrs, want.hosts) || o.Username != want.user || o.Password != want.password || o.MasterName != want.master ||
			o.DB != want.db || o.IsClusterMode != want.cluster || (o.TLSConfig != nil) != want.tls || sentinel != want.sentinel {
			t.Errorf("%s: %+v", address, o)
		}
	}
}

// TestWrongAddresses checks that each error says what to change, and none contains the password.
func TestWrongAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"":                                               "must begin with",
		"http://:secret@host":                            "must begin with",
		"redis-://:secret@host":                          "must begin with",
		"redis-ring://:secret@host":                      "must begin with",
		"redis://:secret@a,b":                            "several hosts need",
		"redis://:secret@":                               "a host is missing",
		"redis://:p@abc/secret@127.0.0.1:6379/0":         "the password has a special character: write / as %2F",
		"redis://:secret/rest@127.0.0.1:6379/0":          "the password has a special character: write / as %2F",
		"redis://:p@a?secret@127.0.0.1:6379/0":           "the password has a special character: write / as %2F",
		"redis-cluster://:secret@a,,b":                   "a host is missing",
		"redis://:secret@host:port":                      "invalid port",
		"redis://:secret%zz@host":                        "invalid",
		"redis://:secret@host/first":                     "the database is \"first\"",
		"redis-sentinel://:secret@host":                  "needs the name of the master",
		"redis-cluster://:secret@host/1":                 "a cluster has no databases",
		"redis://:secret@host?ca=ca.pem":                 "need rediss",
		"redis://:secret@host?timeout=1s":                "no parameter \"timeout\"",
		"rediss://:secret@host?ca=none.pem":              "none.pem",
		"rediss://:secret@host?ca=open.go":               "open.go has no certificate",
		"rediss://:secret@host?cert=open.go&key=open.go": "the parameters cert and key",
	} {
		_, err := Open(address, 2)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
}
