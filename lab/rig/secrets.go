package rig

import (
	"crypto/rand"
	"fmt"
	"strings"
)

// secrets are the passwords of one rig. They reach the servers by files of mode 0600 and
// the replicas by environment: every user of the machine can read a command line.
//
// ZooKeeper and etcd have a password with Config.Login only. Without it, other users can change their data,
// but no request can make them write outside their data folders. ZooKeeper's admin server, reconfiguration and JMX
// are off, and so are etcd's v2 API and profiler. nginx serves no files.
type secrets struct {
	admin  string // of MySQL's root, for the rig alone: it could write files as the lab's owner
	user   string // of the user oversell of MySQL, PostgreSQL, ZooKeeper and etcd, and of Redis
	galera string // the cluster's name, without which no node can join
}

func newSecrets() secrets {
	return secrets{admin: rand.Text(), user: rand.Text(), galera: rand.Text()}
}

// The users of MySQL. labUser may do everything in the schema oversell, and
// in those of guests, whose names begin with oversell_. Its only global privilege is
// PROCESS, to see which statements wait for a lock. Above all it has neither FILE nor SUPER.
const adminUser, labUser = "root", "oversell"

func (s secrets) mysql(user, addr string) string {
	password := s.user
	if user == adminUser {
		password = s.admin
	}
	return fmt.Sprintf("%s:%s@tcp(%s)/oversell", user, password, addr)
}

// withOption returns the data source name with one more option.
func withOption(dsn, option string) string {
	if strings.Contains(dsn, "?") {
		return dsn + "&" + option
	}
	return dsn + "?" + option
}

func (s secrets) postgres(addr string) string {
	return fmt.Sprintf("postgres://%s:%s@%s/oversell?sslmode=disable", labUser, s.user, addr)
}

// RedisURL returns the URL of this rig's Redis at addr, the host:port of the server or of a link.
func (r *Rig) RedisURL(addr string) string {
	return fmt.Sprintf("redis://:%s@%s/0", r.secrets.user, addr)
}

// RedisURL returns the URL of the server s, which must be a Redis server.
func (s *Server) RedisURL() string { return s.rig.RedisURL(s.addr) }
