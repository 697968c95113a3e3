package rig

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// addEtcds adds the one etcd, or the members of a cluster.
func (r *Rig) addEtcds(program string) error {
	names := []string{"etcd"}
	if r.cfg.Ensemble > 1 {
		names = nil
		for i := range r.cfg.Ensemble {
			names = append(names, fmt.Sprintf("etcd-%d", i+1))
		}
	}
	peers, cluster := make([]string, len(names)), make([]string, len(names))
	for i, name := range names {
		port, err := r.ports.take(0)
		if err != nil {
			return err
		}
		peers[i] = "http://" + hostPort(port)
		cluster[i] = name + "=" + peers[i]
	}
	for i, name := range names {
		if err := r.addEtcd(program, name, peers[i], strings.Join(cluster, ",")); err != nil {
			return err
		}
	}
	return nil
}

// addEtcd adds a member that the others of its cluster reach at peer.
func (r *Rig) addEtcd(program, name, peer, cluster string) error {
	s, dir, err := r.newServer(name, 0)
	if err != nil {
		return err
	}
	client := "http://" + s.addr
	args := []string{
		"--name", name, "--data-dir", filepath.Join(dir, "data"),
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", cluster,
		// In ms. They allow leases from 2 s, so that a class does not wait long for a dead holder's.
		"--heartbeat-interval", "100", "--election-timeout", "1000",
		// As with MySQL: a write is handed to the kernel, not synced to the disk.
		"--unsafe-no-fsync",
		// A lock changes its keys again and again, and nobody asks for what they were.
		"--auto-compaction-mode", "revision", "--auto-compaction-retention", "1000",
	}
	s.command = func() *exec.Cmd {
		cmd := exec.Command(program, args...) //nolint:gosec,noctx // found by us; ended by Server
		cmd.Dir = dir
		return cmd
	}
	// Healthy is who knows a leader.
	s.probe = func(ctx context.Context) error { return get(ctx, client+"/health") }
	r.backends = append(r.backends, s)
	r.addrs.Etcd = append(r.addrs.Etcd, s.addr)
	return nil
}
