package rig

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
)

// Topology says behind what the single Redis of the strategies runs. The independent servers of redlock
// run beside it.
type Topology string

// These are the topologies.
const (
	OneRedis      Topology = ""         // redis-1, which is one of the independent servers
	RedisSentinel Topology = "sentinel" // redis-master, two replicas of it, and sentinel-1 to -3
	RedisCluster  Topology = "cluster"  // redis-node-1 to -6: three masters with a replica each
)

// SentinelMaster is the name that the Sentinels give to their master.
const SentinelMaster = "oversell"

// IsOfTopology reports whether a server has this name because it is a Redis behind Sentinel or in a cluster.
func IsOfTopology(name string) bool {
	return name == "redis-master" || strings.HasPrefix(name, "redis-replica-") || strings.HasPrefix(name, "redis-node-")
}

func (r *Rig) addTopology() {
	switch r.cfg.RedisTopology {
	case RedisSentinel:
		r.addSentinels()
	case RedisCluster:
		r.addRedisNodes()
	}
}

// parties returns the names of each Redis, Sentinel and replica of a lab with Sentinel. Each has a user of its
// name, with the password of the default user. If a server switches such a user off, the user cannot reach it:
// see fault.Masters.Split.
func (r *Rig) parties() []string {
	if r.cfg.RedisTopology != RedisSentinel {
		return nil
	}
	names := []string{"redis-master", "redis-replica-1", "redis-replica-2", "sentinel-1", "sentinel-2", "sentinel-3"}
	for i := range r.cfg.Replicas {
		names = append(names, fmt.Sprintf("replica-%d", i+1))
	}
	return names
}

func (r *Rig) addSentinels() {
	writes := []string{"--min-replicas-to-write", fmt.Sprint(r.cfg.RedisMinReplicas), "--min-replicas-max-lag", "1"}
	master := r.newRedis("redis-master", 0, 0, writes...)
	for i := range 2 {
		name := fmt.Sprintf("redis-replica-%d", i+1)
		s := r.newRedis(name, 0, 0, append(writes, "--replicaof", loopback+" "+master.port())...)
		s.probe = r.asks(s.addr, "INFO replication", "master_link_status:up")
	}
	var addrs []string
	for i := range 3 {
		s := r.newServer(fmt.Sprintf("sentinel-%d", i+1), r.found.redis, 0)
		conf := s.conf("sentinel.conf", map[string]any{
			"Name": s.name, "Password": r.secrets.user, "Parties": r.parties(),
			"Master": SentinelMaster, "Port": master.port(),
		})
		s.args = []string{conf, "--sentinel", "--port", s.port(), "--bind", loopback, "--dir", s.dir}
		// A Sentinel that starts too early does not look for replicas again for 10 s.
		s.prepare = func(ctx context.Context) error {
			return Await(ctx, "redis-master has its replicas", r.asks(master.addr, "INFO replication", "connected_slaves:2"))
		}
		s.probe = r.asks(s.addr, "SENTINEL CKQUORUM "+SentinelMaster, "+OK 3 usable")
		r.backends = append(r.backends, s)
		addrs = append(addrs, s.addr)
	}
	r.addrs.SingleRedis = fmt.Sprintf("redis-sentinel://:%[1]s@%[2]s/%[3]s?sentinel=:%[1]s", r.secrets.user, strings.Join(addrs, ","), SentinelMaster)
}

func (r *Rig) addRedisNodes() {
	var addrs []string
	for i := range 6 {
		port, err := r.ports.take(0)
		r.check(err)
		s := r.newRedis(fmt.Sprintf("redis-node-%d", i+1), 0, 0,
			"--cluster-enabled", "yes", "--cluster-port", fmt.Sprint(port), "--cluster-node-timeout", "2000")
		addrs = append(addrs, s.addr)
	}
	r.addrs.SingleRedis = fmt.Sprintf("redis-cluster://:%s@%s", r.secrets.user, strings.Join(addrs, ","))
}

// asParty changes the address of Sentinels, so that the client is the user with this name.
func asParty(address, name string) string {
	return strings.NewReplacer("://:", "://"+name+":", "?sentinel=:", "?sentinel="+name+":").Replace(address)
}

// joinCluster makes a cluster of the nodes, which run already.
func (r *Rig) joinCluster(ctx context.Context) error {
	var nodes []*Server
	args := []string{"--cluster", "create"}
	for _, s := range r.backends {
		if strings.HasPrefix(s.name, "redis-node-") {
			nodes, args = append(nodes, s), append(args, s.addr)
		}
	}
	join := command{
		path: r.found.redisCLI, dir: r.dir, args: append(args, "--cluster-replicas", "1", "--cluster-yes"),
		env: environment("REDISCLI_AUTH=" + r.secrets.user), // every user can read a command line
	}
	if err := r.run(ctx, "make a cluster of Redis", filepath.Base(r.found.redisCLI)+".log", join); err != nil {
		return err
	}
	for _, s := range nodes {
		if err := Await(ctx, s.name+" knows that all slots are served", r.asks(s.addr, "CLUSTER INFO", "cluster_state:ok")); err != nil {
			return err
		}
	}
	for _, s := range nodes[3:] {
		if err := Await(ctx, s.name+" follows its master", r.asks(s.addr, "INFO replication", "master_link_status:up")); err != nil {
			return err
		}
	}
	return nil
}
