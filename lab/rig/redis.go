package rig

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"oversell/lab/backend"
)

// addRedis adds redis-i. After any stop it starts empty, as the tutorial's locks need no disk. With
// Config.Fsync it starts with its data.
func (r *Rig) addRedis(i int) {
	s := r.newRedis(fmt.Sprintf("redis-%d", i), r.cfg.Ports.Backends.Redis, i-1)
	r.addrs.Redis = append(r.addrs.Redis, s.RedisURL())
	if r.cfg.Certificates == nil {
		return
	}
	port, err := r.ports.take(0)
	r.check(err)
	s.args = append(s.args, "--tls-port", fmt.Sprint(port), "--tls-auth-clients", "no",
		"--tls-cert-file", r.cfg.Certificates.Cert, "--tls-key-file", r.cfg.Certificates.Key, "--tls-ca-cert-file", r.cfg.Certificates.CA)
	r.addrs.RedisTLS = append(r.addrs.RedisTLS, fmt.Sprintf("rediss://%s:%s@%s/0?ca=%s", r.secrets.name, r.secrets.user, hostPort(port), r.cfg.Certificates.CA))
}

const redisReplica = "redis-1-replica"

// addRedisReplica adds a replica of redis-1 for fail-overs, so it is not among the Addresses.
func (r *Rig) addRedisReplica() {
	master, err := r.Server("redis-1")
	r.check(err)
	_, port, _ := strings.Cut(r.addLink(redisReplica, master).addr, ":")
	s := r.newRedis(redisReplica, 0, 0, "--replicaof", loopback+" "+port)
	s.probe = r.asks(s.addr, "INFO replication", "master_link_status:up")
}

// newRedis adds a Redis server whose command line ends with more.
func (r *Rig) newRedis(name string, first, i int, more ...string) *Server {
	s := r.newBackend(name, r.found.redis, first, i)
	if r.cfg.Clocks {
		s.clock = filepath.Join(s.dir, "clock")
		s.env = environment(r.found.clockEnv(s.clock)...)
		r.check(s.SetClock(0))
	}
	conf := s.conf("redis.conf", map[string]any{
		"Port": s.port(), "Dir": s.dir, "User": r.secrets.name, "Password": r.secrets.user,
		"TLS": r.cfg.Certificates != nil, "Fsync": r.cfg.Fsync, "Name": name, "InTopology": IsOfTopology(name), "Parties": r.parties(),
	})
	s.args = append([]string{conf}, more...)
	s.probe = r.asks(s.addr, "PING", "+PONG")
	r.backends = append(r.backends, s)
	return s
}

// asks returns a probe that sends a command to a Redis, and waits for a line of its answer.
func (r *Rig) asks(addr, command, wanted string) func(context.Context) error {
	return func(ctx context.Context) error {
		return answers(ctx, addr, "AUTH "+r.secrets.user+"\r\n"+command+"\r\nQUIT\r\n", wanted)
	}
}

// answers returns nil if a line of the answer from addr begins with the wanted text.
func answers(ctx context.Context, addr, request, wanted string) error {
	answer, err := backend.Exchange(ctx, addr, request, wanted)
	if err == nil && !strings.Contains("\n"+answer, "\n"+wanted) {
		err = fmt.Errorf("it answered %q instead of %s", answer, wanted)
	}
	return err
}
