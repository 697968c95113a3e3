package rig

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// addRedis adds redis-i. It persists nothing, as the tutorial's locks need no disk: after
// a stop, graceful or not, it starts empty.
func (r *Rig) addRedis(found programs, i int) error {
	var args []string
	if i == 1 && r.cfg.RedisReplica {
		args = []string{"--repl-diskless-sync-delay", "0"} // nobody else will come: the default waits 5 s
	}
	s, err := r.newRedis(found, fmt.Sprintf("redis-%d", i), args...)
	if err != nil {
		return err
	}
	s.probe = func(ctx context.Context) error {
		return ask(ctx, s.addr, "AUTH "+r.secrets.user+"\r\nPING\r\n", "+PONG")
	}
	r.addrs.Redis = append(r.addrs.Redis, s.RedisURL())
	return nil
}

// redisReplica is the name of the server that follows redis-1.
const redisReplica = "redis-1-replica"

// addRedisReplica adds a replica of redis-1, which was added before. It is for a failover
// and for nothing else, so it is not among the Addresses.
func (r *Rig) addRedisReplica(found programs) error {
	master, err := r.Server("redis-1")
	if err != nil {
		return err
	}
	link, err := r.addLink(redisReplica, master)
	if err != nil {
		return err
	}
	_, port, _ := strings.Cut(link.addr, ":")
	s, err := r.newRedis(found, redisReplica, "--replicaof", loopback+" "+port, "--repl-diskless-sync-delay", "0")
	if err != nil {
		return err
	}
	s.probe = func(ctx context.Context) error {
		return ask(ctx, s.addr, "AUTH "+r.secrets.user+"\r\nINFO replication\r\nQUIT\r\n", "master_link_status:up")
	}
	return nil
}

// redisConf is the part of Redis's configuration that is not for everybody's eyes. The
// commands that it removes write files as the lab's owner: CONFIG SET dir makes any file
// the next dump, MODULE LOAD runs a library. Redis refuses them by itself since version 7.
const redisConf = `requirepass %[1]s
masterauth %[1]s
rename-command CONFIG ""
rename-command MODULE ""
rename-command DEBUG ""
`

// newRedis makes a Redis with more arguments; it still needs its probe.
func (r *Rig) newRedis(found programs, name string, args ...string) (*Server, error) {
	s, dir, err := r.newServer(name, 0)
	if err != nil {
		return nil, err
	}
	env := environment()
	if r.cfg.Clocks {
		s.clock = filepath.Join(dir, "clock")
		env = append(env, found.clock.env(s.clock)...)
		if err := s.SetClock(0); err != nil {
			return nil, err
		}
	}
	conf := filepath.Join(dir, "redis.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, redisConf, r.secrets.user), 0o600); err != nil {
		return nil, fmt.Errorf("rig: %w", err)
	}
	_, port, _ := strings.Cut(s.addr, ":")
	args = append([]string{
		conf, "--port", port, "--bind", loopback, "--dir", dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no",
	}, args...)
	s.command = func() *exec.Cmd {
		cmd := exec.Command(found.redis, args...) //nolint:gosec,noctx // found by us; ended by Server
		cmd.Dir, cmd.Env = dir, env
		return cmd
	}
	r.backends = append(r.backends, s)
	return s, nil
}

// ask sends a question to addr and reads lines until one begins with answer.
func ask(ctx context.Context, addr, question, answer string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	// Cancelled as well as timed out: a close would otherwise wait for the probe.
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })()

	if _, err := io.WriteString(conn, question); err != nil {
		return err
	}
	var first string
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), answer) {
			return nil
		}
		if first == "" {
			first = lines.Text()
		}
	}
	if first == "" {
		return errors.New("no answer")
	}
	return fmt.Errorf("it answered %q", first)
}
