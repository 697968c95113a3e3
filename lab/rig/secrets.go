package rig

import (
	"cmp"
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
	admin  string // of MySQL's adminUser and root, for the rig alone: they could write files as the lab's owner
	name   string // of the user of MySQL, ZooKeeper and etcd
	user   string // the password of this user, of PostgreSQL's user oversell, and of Redis
	galera string // the cluster's name, without which no node can join
}

func newSecrets(account string) secrets {
	name, password, _ := strings.Cut(account, ":")
	return secrets{
		admin: rand.Text(), name: cmp.Or(name, "oversell"), user: cmp.Or(password, rand.Text()), galera: rand.Text(),
	}
}

// adminUser is MySQL's user for the rig alone. The other user may do everything in the schema oversell, in those of
// guests, whose names begin with oversell_, and in those that students create, whose names begin with test. Its only
// global privilege is PROCESS, to see which statements wait for a lock. Above all it has neither FILE nor SUPER.
const adminUser = "oversell_admin"

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
	return fmt.Sprintf("postgres://oversell:%s@%s/oversell?sslmode=disable", s.user, addr)
}

// AdminDSN returns the data source name of the administrator of the server s, which must be a MySQL or a MariaDB.
func (s *Server) AdminDSN() string { return s.rig.secrets.mysql(adminUser, s.addr) }

// RedisURL returns the URL of this rig's Redis at addr, the host:port of the server or of a link.
func (r *Rig) RedisURL(addr string) string {
	return fmt.Sprintf("redis://:%s@%s/0", r.secrets.user, addr)
}

// RedisURL returns the URL of the server s, which must be a Redis server.
func (s *Server) RedisURL() string { return s.rig.RedisURL(s.addr) }
