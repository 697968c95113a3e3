package rig

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"runtime"
	"strings"
)

// addReplica adds replica-i, which uses all the backends that were added before it.
func (r *Rig) addReplica(i int) error {
	preferred := 0
	if i <= len(r.cfg.Ports.Replicas) {
		preferred = r.cfg.Ports.Replicas[i-1]
	}
	name := fmt.Sprintf("replica-%d", i)
	s, dir, err := r.newServer(name, preferred)
	if err != nil {
		return err
	}
	addrs, err := r.addrsFor(name, r.mysqlOf(i))
	if err != nil {
		return err
	}
	args := append([]string{"serve", "--lab", "--addr", s.addr, "--replica", name}, r.cfg.ReplicaArgs...)
	// Each replica stands for a machine of its own, so it gets its share of the cores, not
	// all of them: with more threads than cores it would pay for waking them.
	share := max(1, runtime.NumCPU()/r.cfg.Replicas)
	s.command = func() *exec.Cmd {
		cmd := exec.Command(r.cfg.Binary, args...) //nolint:gosec,noctx // the caller's program; ended by Server
		cmd.Dir = dir
		// Passwords and the token by environment: everybody sees a command line.
		cmd.Env = environment(append(addrs.serveEnv(), "LAB_TOKEN="+r.cfg.Token, fmt.Sprintf("GOMAXPROCS=%d", share))...)
		return cmd
	}
	// /readyz answers 503 for backends that a partial rig leaves out, and for those
	// that a test has stopped.
	s.probe = func(ctx context.Context) error { return get(ctx, "http://"+s.addr+"/healthz") }
	if r.cfg.complete() {
		s.ready = func(ctx context.Context) error { return await(ctx, "http://"+s.addr+"/readyz") }
	}
	r.replicas = append(r.replicas, s)
	r.addrs.Replicas = append(r.addrs.Replicas, "http://"+s.addr)
	return nil
}

// addrsFor are the backends' addresses as the replica of that name is to see them.
func (r *Rig) addrsFor(name, mysql string) (Addresses, error) {
	addrs := r.addrs
	addrs.MySQL = mysql
	if !r.cfg.Proxied {
		return addrs, nil
	}
	var links []*Link
	for _, backend := range r.backends {
		if backend.name == redisReplica {
			continue // replicas use masters only
		}
		l, err := r.addLink(name, backend)
		if err != nil {
			return Addresses{}, err
		}
		links = append(links, l)
	}
	return addrs.over(links), nil
}

// get wants a 200 from url.
func get(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Close = true // a kept connection would make a later stop wait for its end
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(res.Body, 1024))
		return fmt.Errorf("%s: %s: %s", url, res.Status, strings.TrimSpace(string(body)))
	}
	return nil
}
