package rig

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Config has the servers of a rig and their settings. The zero value has no server.
type Config struct {
	MySQL     bool // MySQL 8 or newer, or else MariaDB, with an empty database `oversell`
	Redis     int  // number of independent Redis, without persistence
	Zookeeper int  // number of ZooKeeper; several are an ensemble, zookeeper-1 to -n
	Etcd      int  // number of etcd; several are a cluster, etcd-1 to -n
	Postgres  bool // one PostgreSQL, and a pgbouncer before it, for locks on trial

	// Host has the addresses of another lab. In its MySQL and ZooKeeper this rig has a database and a folder
	// of its own, instead of servers of its own. Only tests are guests. Both stay until the host ends.
	Host *Addresses

	Database      Database // several MariaDB servers instead of one MySQL; the pairs are for experiments; needs MySQL
	RedisTopology Topology // Sentinel or a cluster for the strategies on a single Redis

	// For experiments only.
	RedisMinReplicas int  // min-replicas-to-write of the Redis behind Sentinel; needs RedisSentinel
	RedisReplica     bool // redis-1-replica follows redis-1, over a link; needs Redis
	Clocks           bool // each Redis has a clock of its own: see Server.SetClock; on Linux only
	Proxied          bool // each replica has a link of its own to each backend: see Rig.Link

	// Login makes ZooKeeper and etcd refuse clients without the password in Addresses.Login. MySQL, Redis and
	// PostgreSQL always have a password, which is in their addresses; locks on trial get only addresses.
	Login bool

	// Account is the user:password of all servers; empty means oversell and a random password. Both have only
	// letters, digits and _, so that no file or address must quote them.
	Account string

	// Conditions of a deployment, which the lab leaves out by default.
	TLS          bool          // replicas connect with TLS, and as users with few rights; the rig makes Certificates
	Certificates *Certificates // for connections with TLS; nil means without, unless TLS is set
	Delay        time.Duration // each answer of a backend to a replica arrives later by this time; whole ms, needs Proxied
	Fsync        bool          // each backend syncs a write to the disk before it answers
	Disk         time.Duration // each such sync takes this time longer; needs Fsync, and strace, which only Linux has

	// Cores are those on which all servers run, see package pin; nil means any. Only Linux pins them.
	Cores []int

	Replicas int    // number of `oversell serve`; they use every server above
	Binary   string // path of the program oversell; if it is empty, the rig builds the program
	Token    string // the lab's token, which the replicas require; needed with Replicas
	Nginx    bool   // a balancer before the replicas; needs Replicas

	Prometheus bool // a Prometheus that scrapes the replicas; needs Replicas

	Page string // host:port of the lab's page, which nginx serves at /; empty means none

	ReplicaArgs []string // more flags for `oversell serve`
	ReplicaEnv  []string // more variables for it, as NAME=value
	Ports       Ports
	Log         io.Writer
	OnExit      func(Exit) // is called when a server dies unexpectedly; must not block or call the rig
	Restart     bool       // a replica that dies unexpectedly is started again; not for experiments, which kill replicas
}

// Certificates are the paths of files in PEM format. MySQL then also accepts TLS, ZooKeeper does at
// another port, and etcd requires it. Servers read them when they start.
type Certificates struct {
	CA   string // the authority of the clients' certificates, which only ZooKeeper requires
	Cert string // the certificate of all servers
	Key  string // its private key, in PKCS #8
}

// Ports are preferred ports. Where a port is 0 or in use, the rig takes any free port.
type Ports struct {
	Nginx      int
	Prometheus int
	Replicas   []int

	Backends BackendPorts
}

// BackendPorts are the ports of the first server of a kind; the next one gets the next port. Where one of them is in
// use, the rig does not start: programs with these ports would connect to another server. 0 means any free port.
type BackendPorts struct{ MySQL, Redis, Zookeeper, Etcd int }

// Exit describes a server that died unexpectedly.
type Exit struct {
	Name   string // such as redis-3
	Status string // such as `signal: killed` or `exit status 1`
	Tail   string // the last lines of its log
}

// FullLab has MySQL, five Redis servers, ZooKeeper, etcd, nginx and three replicas of binary, on free ports.
func FullLab(binary, token string) Config {
	return Config{
		MySQL: true, Redis: 5, Zookeeper: 1, Etcd: 1,
		Replicas: 3, Binary: binary, Token: token, Nginx: true,
	}
}

// OwnLab is a FullLab with a random token, which a command starts. It writes to log which server has died.
func OwnLab(binary string, log io.Writer) Config {
	cfg := FullLab(binary, strings.ToLower(rand.Text()[:12]))
	cfg.OnExit = func(e Exit) {
		_, _ = fmt.Fprintf(log, "%s died (%s). Its log ends with:\n%s\n", e.Name, e.Status, e.Tail)
	}
	return cfg
}

func (c Config) validate() error {
	for _, rule := range []struct {
		broken  bool
		message string
	}{
		{c.Database != OneServer && !c.Database.isPair() && c.Database != GaleraCluster, fmt.Sprintf("no database %q: there are %s, %s, %s and %s", c.Database, GaleraCluster, Galera, TwoMasters, DelayedReads)},
		{c.Database != OneServer && !c.MySQL, string(c.Database) + " needs Config.MySQL"},
		{c.Redis < 0 || c.Redis > 50, fmt.Sprintf("redis: %d servers: must be 0 to 50", c.Redis)},
		{c.Zookeeper < 0 || c.Zookeeper > 9, fmt.Sprintf("zookeeper: an ensemble of %d: must be 0 to 9", c.Zookeeper)},
		{c.Etcd < 0 || c.Etcd > 9, fmt.Sprintf("etcd: a cluster of %d: must be 0 to 9", c.Etcd)},
		{c.RedisTopology != OneRedis && c.RedisTopology != RedisSentinel && c.RedisTopology != RedisCluster, fmt.Sprintf("no topology %q of Redis: there are %s and %s", c.RedisTopology, RedisSentinel, RedisCluster)},
		// Sentinels and nodes tell a replica the addresses of the servers themselves, not those of links.
		{c.TLS && (c.Proxied || c.RedisTopology != OneRedis || c.Database.isPair()), "a lab with TLS has one MySQL or a Galera cluster, and single Redis, without links"},
		{c.RedisTopology != OneRedis && c.Proxied, "Sentinel and a cluster of Redis cannot be reached over links"},
		{c.RedisMinReplicas != 0 && c.RedisTopology != RedisSentinel, "min-replicas-to-write needs Sentinel"},
		{c.RedisReplica && c.Redis == 0, "a replica of Redis needs Redis"},
		{c.Replicas < 0 || c.Replicas > 50, fmt.Sprintf("replicas: %d: must be 0 to 50", c.Replicas)},
		{c.Replicas > 0 && c.Token == "", "replicas need Config.Token"},
		{c.Nginx && c.Replicas == 0, "nginx needs replicas to balance"},
		{c.Prometheus && c.Replicas == 0, "Prometheus needs replicas to scrape"},
		{c.Host != nil && (c.Proxied || c.TLS || c.Fsync || c.Certificates != nil || c.Database != OneServer || c.Zookeeper > 1), "a guest of another lab has no links, settings or clusters of its own"},
		{c.Host != nil && (c.Login || c.Host.Login != ""), "ZooKeeper of a lab with a password has no guests"},
		{c.Delay > 0 && !c.Proxied, "a delay needs Config.Proxied"},
		{c.Disk > 0 && !c.Fsync, "a slow disk needs Config.Fsync"},
	} {
		if rule.broken {
			return errors.New("rig: " + rule.message)
		}
	}
	return nil
}

// Addresses has the servers' own addresses, not those of links, for `oversell lab --json`. A
// missing server has an empty address. The users of MySQL and Redis cannot write files.
type Addresses struct {
	Target      string   `json:"target"`                 // http://host:port of nginx, or of the first replica without nginx
	Replicas    []string `json:"replicas"`               // http://host:port of each
	MySQL       string   `json:"mysql"`                  // a go-sql-driver data source name; of a Galera cluster, that of its proxy
	Redis       []string `json:"redis"`                  // redis://:password@host:port/0 of each
	SingleRedis string   `json:"single_redis,omitempty"` // the address of a topology, see redislock.Open
	Zookeeper   []string `json:"zookeeper"`              // host:port
	Etcd        []string `json:"etcd"`                   // host:port
	Login       string   `json:"login,omitempty"`        // user:password of ZooKeeper (scheme digest) and etcd, or empty if they require none
	JAAS        string   `json:"jaas,omitempty"`         // the path of the file with this login for ZooKeeper's own client
	Token       string   `json:"token"`                  // the lab's token

	// With Config.Certificates, these are for TLS: the host:port of each ZooKeeper, and the rediss://user:password@…
	// of each Redis, with a user of few rights. CA is the path of the authority, which the clients of etcd need.
	ZookeeperTLS []string `json:"zookeeper_tls,omitempty"`
	RedisTLS     []string `json:"redis_tls,omitempty"`
	CA           string   `json:"ca,omitempty"`

	Postgres  string `json:"postgres,omitempty"`  // a URL
	Pgbouncer string `json:"pgbouncer,omitempty"` // a URL

	Prometheus string `json:"prometheus,omitempty"` // http://host:port

	// Reads is the data source name of the follower where replicas read the stock, or empty.
	Reads string `json:"mysql_reads,omitempty"`
}

// ServeEnv returns the environment variables with the addresses for `oversell serve`. To save
// memory, the strategies that need a single Redis share the first of the five servers with Redlock.
func (a Addresses) ServeEnv() (env []string) {
	set := func(name string, values ...string) {
		if len(values) > 0 && values[0] != "" {
			env = append(env, name+"="+strings.Join(values, ","))
		}
	}
	set("MYSQL_DSN", a.MySQL)
	set("MYSQL_READS", a.Reads)
	if set("REDIS_URL", a.SingleRedis); a.SingleRedis == "" {
		set("REDIS_URL", a.Redis[:min(1, len(a.Redis))]...)
	}
	set("REDLOCK_URLS", a.Redis...)
	set("ZK_SERVERS", a.Zookeeper...)
	set("ETCD_ENDPOINTS", a.Etcd...)
	set("ZK_AUTH", a.Login)
	set("ETCD_AUTH", a.Login)
	set("POSTGRES_URL", a.Postgres)
	set("PGBOUNCER_URL", a.Pgbouncer)
	return env
}
