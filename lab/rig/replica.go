package rig

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"

	"oversell/api"
)

// addReplica adds replica-i, which uses all the backends that were added before it.
func (r *Rig) addReplica(i int) {
	preferred := 0
	if i <= len(r.cfg.Ports.Replicas) {
		preferred = r.cfg.Ports.Replicas[i-1]
	}
	name := fmt.Sprintf("replica-%d", i)
	s := r.newServer(name, r.cfg.Binary, preferred)
	url := "http://" + s.addr
	s.args = append([]string{"serve", "--lab", "--addr", s.addr, "--replica", name}, r.cfg.ReplicaArgs...)
	// Each replica stands for a machine of its own, so it gets a share of the cores. With more threads
	// than cores, a replica would lose time when it wakes them.
	share := max(1, cmp.Or(len(r.cfg.Cores), runtime.NumCPU())/r.cfg.Replicas)
	// Passwords and the token are in the environment, because every user can read a command line.
	s.env = environment(slices.Concat(r.backendsEnv(name, i), []string{"LAB_TOKEN=" + r.cfg.Token, fmt.Sprintf("GOMAXPROCS=%d", share)}, r.cfg.ReplicaEnv)...)
	// Not /readyz: it answers 503 without a backend, as in a partial rig or in some tests.
	s.probe = func(ctx context.Context) error { return get(ctx, url+"/healthz") }
	if r.cfg.MySQL && r.cfg.Redis > 0 && r.cfg.Zookeeper > 0 && r.cfg.Etcd > 0 {
		s.readyURL = url + "/readyz"
	}
	r.replicas = append(r.replicas, s)
	r.addrs.Replicas = append(r.addrs.Replicas, url)
}

func (r *Rig) backendsEnv(name string, i int) []string {
	addrs := r.addrs
	addrs.MySQL = r.mysqlOf(i)
	if r.cfg.RedisTopology == RedisSentinel {
		addrs.SingleRedis = asParty(addrs.SingleRedis, name)
	}
	if r.cfg.TLS {
		addrs.MySQL, addrs.Zookeeper, addrs.Redis = withOption(addrs.MySQL, "tls=true"), addrs.ZookeeperTLS, addrs.RedisTLS
		return append(addrs.ServeEnv(), r.secureEnv()...)
	}
	env := addrs.ServeEnv()
	if !r.cfg.Proxied {
		return env
	}
	var overLinks []string // pairs of a backend's address and that of the link to it
	for _, backend := range r.backends {
		if backend.name == redisReplica { // replicas use masters only
			continue
		}
		l := r.addLink(name, backend)
		if r.cfg.Delay > 0 {
			r.check(l.Delay(r.cfg.Delay))
		}
		overLinks = append(overLinks, backend.addr, l.addr)
	}
	for i, variable := range env {
		env[i] = strings.NewReplacer(overLinks...).Replace(variable)
	}
	return env
}

func get(ctx context.Context, url string) error {
	// A connection that is kept open would delay a later Stop of the server.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return api.Client{Base: url, HTTP: client}.Call(ctx, http.MethodGet, "", nil, nil)
}
