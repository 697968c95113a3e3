package rig

import (
	"context"
	"path/filepath"
	"strings"
)

func (r *Rig) addEtcds() {
	names := memberNames("etcd", r.cfg.Etcd)
	peers, cluster := make([]string, len(names)), make([]string, len(names))
	for i, name := range names {
		peers[i] = "http://" + r.takeAddr()
		cluster[i] = name + "=" + peers[i]
	}
	for i, name := range names {
		s := r.newBackend(name, r.found.etcd, r.cfg.Ports.Backends.Etcd, i)
		client := "http://" + s.addr
		health := client
		if files := r.cfg.Certificates; files != nil {
			client, health = "https://"+s.addr, "http://"+r.takeAddr()
			s.args = []string{"--cert-file", files.Cert, "--key-file", files.Key, "--listen-metrics-urls", health}
		}
		s.args = append(s.args,
			"--name", name, "--data-dir", filepath.Join(s.dir, "data"),
			"--listen-client-urls", client, "--advertise-client-urls", client,
			"--listen-peer-urls", peers[i], "--initial-advertise-peer-urls", peers[i], "--initial-cluster", strings.Join(cluster, ","),
			// Both in ms: they allow leases as short as 2 s, so that a dead holder's lease ends soon.
			"--heartbeat-interval", "100", "--election-timeout", "1000",
			// etcd deletes old versions of keys: locks write often, and no client reads old versions.
			"--auto-compaction-mode", "revision", "--auto-compaction-retention", "1000",
			"--bcrypt-cost", "4", // for Config.Login: the least, as the passwords are random
		)
		if !r.cfg.Fsync {
			// As in MySQL, a write is passed to the kernel, and not synced to the disk.
			s.args = append(s.args, "--unsafe-no-fsync")
		}
		// A member is healthy when its cluster has a leader.
		s.probe = func(ctx context.Context) error { return get(ctx, health+"/health") }
		r.backends = append(r.backends, s)
		r.addrs.Etcd = append(r.addrs.Etcd, s.addr)
	}
}
