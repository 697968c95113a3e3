package rig

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// Config says which servers a rig has. The zero value has none: a test asks for
// what it needs, such as Config{Redis: 1}.
type Config struct {
	MySQL     bool // MySQL 8 or newer, or else MariaDB, with an empty database `oversell`
	Redis     int  // number of independent Redis, without persistence
	Zookeeper bool // one standalone ZooKeeper
	Etcd      bool // one etcd

	// What only experiments need.
	Ensemble     int      // more than 1: so many ZooKeeper and etcd instead of the one, zookeeper-1 to -n, etcd-1 to -n
	RedisReplica bool     // redis-1-replica follows redis-1, over a line; needs Redis
	Clocks       bool     // each Redis has a clock of its own: see Server.SetClock; on Linux only
	Proxied      bool     // each replica has a line of its own to each backend: see Rig.Line
	Database     Database // a pair instead of the one MySQL, of MariaDB's; needs MySQL

	Replicas int    // number of `oversell serve`; they use every server above
	Binary   string // path of the program oversell; if empty, it is built, as tests want it
	Token    string // the lab's token, which the replicas ask for; needed with Replicas
	Nginx    bool   // a balancer before the replicas; needs Replicas

	Page string // host:port of the lab's page, which nginx has at /; empty: none

	ReplicaArgs []string // more flags for `oversell serve`
	Ports       Ports    // wishes
	Log         io.Writer
	OnExit      func(Exit) // told when a server dies unasked; must not block or call the rig
}

// Ports are the ports that nginx and the replicas get when they are free. A zero,
// or a port in use, makes it any free one.
type Ports struct {
	Nginx    int
	Replicas []int
}

// Exit describes a server that died though nobody stopped it.
type Exit struct {
	Name   string // such as redis-3
	Status string // such as `signal: killed` or `exit status 1`
	Tail   string // the last lines of its log
}

// Classroom is the whole lab: MySQL, five Redis, ZooKeeper, etcd, nginx and three
// replicas of the program at path binary, on the ports of the tutorial if free.
func Classroom(binary, token string) Config {
	return Config{
		MySQL: true, Redis: 5, Zookeeper: true, Etcd: true,
		Replicas: 3, Binary: binary, Token: token, Nginx: true,
		Ports: Ports{Nginx: 8080, Replicas: []int{8000, 8100, 8200}},
	}
}

func (c Config) validate() error {
	switch {
	case c.Database != OneServer && !c.Database.isPair():
		return fmt.Errorf("rig: no database %q: there are %s, %s and %s", c.Database, Galera, TwoMasters, DelayedReads)
	case c.Database.isPair() && !c.MySQL:
		return fmt.Errorf("rig: %s needs Config.MySQL", c.Database)
	case c.Redis < 0 || c.Redis > 50:
		return fmt.Errorf("rig: redis: %d servers asked, 0 to 50 allowed", c.Redis)
	case c.Ensemble < 0 || c.Ensemble > 9:
		return fmt.Errorf("rig: zookeeper: an ensemble of %d asked, 0 to 9 allowed", c.Ensemble)
	case c.Ensemble > 0 && !c.Zookeeper && !c.Etcd:
		return errors.New("rig: an ensemble needs Config.Zookeeper or Config.Etcd")
	case c.RedisReplica && c.Redis == 0:
		return errors.New("rig: a replica of Redis needs Redis")
	case c.Replicas < 0 || c.Replicas > 50:
		return fmt.Errorf("rig: replicas: %d asked, 0 to 50 allowed", c.Replicas)
	case c.Replicas > 0 && c.Token == "":
		return errors.New("rig: replicas need Config.Token")
	case c.Nginx && c.Replicas == 0:
		return errors.New("rig: nginx needs replicas to balance")
	}
	return nil
}

// complete is whether the replicas have all the backends that they know, and get ready.
func (c Config) complete() bool { return c.MySQL && c.Redis > 0 && c.Zookeeper && c.Etcd }

// Addresses says where everything listens. Its JSON is what `oversell lab --json`
// writes. A server that the rig does not have is empty. The passwords in it are those of
// users that can't write files. The addresses are those of the
// servers themselves, whatever lines lead there: the lab sees what no replica can.
type Addresses struct {
	Target    string   `json:"target"`    // http://host:port of nginx, or of the first replica without nginx
	Replicas  []string `json:"replicas"`  // http://host:port of each
	MySQL     string   `json:"mysql"`     // a go-sql-driver data source name
	Redis     []string `json:"redis"`     // redis://:password@host:port/0 of each
	Zookeeper []string `json:"zookeeper"` // host:port
	Etcd      []string `json:"etcd"`      // host:port
	Token     string   `json:"token"`     // the lab's token

	// Reads is like MySQL, of the follower that the stock is read at; empty without one.
	Reads string `json:"mysql_reads,omitempty"`
}

// serveEnv are the variables of `oversell serve` for this lab. The first Redis is also the
// single one: with a second deployment of five, a laptop would run ten for no lesson more.
func (a Addresses) serveEnv() (env []string) {
	set := func(name string, values ...string) {
		if len(values) > 0 && values[0] != "" {
			env = append(env, name+"="+strings.Join(values, ","))
		}
	}
	set("MYSQL_DSN", a.MySQL)
	set("MYSQL_READS", a.Reads)
	set("REDIS_URL", a.Redis[:min(1, len(a.Redis))]...)
	set("REDLOCK_URLS", a.Redis...)
	set("ZK_SERVERS", a.Zookeeper...)
	set("ETCD_ENDPOINTS", a.Etcd...)
	return env
}

// over are the addresses for a server that has these lines.
func (a Addresses) over(links []*Link) Addresses {
	var pairs []string
	for _, l := range links {
		pairs = append(pairs, l.upstream, l.addr)
	}
	replacer := strings.NewReplacer(pairs...)
	replaceAll := func(addrs []string) []string {
		replaced := make([]string, len(addrs))
		for i, addr := range addrs {
			replaced[i] = replacer.Replace(addr)
		}
		return replaced
	}
	a.MySQL, a.Reads = replacer.Replace(a.MySQL), replacer.Replace(a.Reads)
	a.Redis, a.Zookeeper, a.Etcd = replaceAll(a.Redis), replaceAll(a.Zookeeper), replaceAll(a.Etcd)
	return a
}
