package rig

import (
	"context"
	"path/filepath"
	"strings"
)

func (r *Rig) addEtcds(program string) {
	names := r.memberNames("etcd")
	peers, cluster := make([]string, len(names)), make([]string, len(names))
	for i, name := range names {
		peers[i] = "http://" + r.takeAddr()
		cluster[i] = name + "=" + peers[i]
	}
	for i, name := range names {
		r.addEtcd(program, name, peers[i], strings.Join(cluster, ","))
	}
}

// addEtcd adds one member of an etcd cluster. peer is the URL at which the other members reach it,
// and cluster lists the names and URLs of all members.
func (r *Rig) addEtcd(program, name, peer, cluster string) {
	s := r.newServer(name, program, 0)
	client := "http://" + s.addr
	s.args = []string{
		"--name", name, "--data-dir", filepath.Join(s.dir, "data"),
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", cluster,
		// These two times are in ms. They allow leases as short as 2 s, so that the lease of a dead
		// holder ends soon.
		"--heartbeat-interval", "100", "--election-timeout", "1000",
		// As in MySQL, a write is passed to the kernel, and not synced to the disk.
		"--unsafe-no-fsync",
		// etcd deletes old versions of the keys. Locks write their keys often, and no client reads old
		// versions.
		"--auto-compaction-mode", "revision", "--auto-compaction-retention", "1000",
	}
	// A member is healthy when its cluster has a leader.
	s.probe = func(ctx context.Context) error { return get(ctx, client+"/health") }
	r.backends = append(r.backends, s)
	r.addrs.Etcd = append(r.addrs.Etcd, s.addr)
}
