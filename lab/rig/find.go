package rig

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// ErrMissing is wrapped by the error of Start when a program is not installed.
var ErrMissing = errors.New("not installed")

func missing(name string) error {
	install := `run "make servers"`
	switch name { // what "make servers" leaves out, as most labs do not need it
	case "initdb", "pgbouncer":
		install = "install Debian's packages postgresql and pgbouncer"
	case "prometheus":
		install = `run "make observe", or install Debian's package prometheus`
	case "strace":
		install = "install Debian's package strace"
	}
	return fmt.Errorf("rig: %s: %w: %s", name, ErrMissing, install)
}

// programs has the paths of installed programs. A program that is not needed has an empty path.
type programs struct {
	mysqld     string // of MySQL 8 or newer, or of MariaDB
	installer  string // mariadb-install-db; empty for MySQL
	galera     string // the library that makes a cluster of MariaDB
	haproxy    string
	mariadb    string // MariaDB's client, with which HAProxy checks the nodes of a cluster
	redis      string
	redisCLI   string
	faketime   string // libfaketime, which gives a program another clock
	malloc     string // libtcmalloc_minimal
	strace     string
	zookeeper  zookeeperProgram
	etcd       string
	initdb     string // of PostgreSQL
	pgbouncer  string
	nginx      string
	prometheus string
}

// Installed returns nil, or an error that wraps ErrMissing and names all missing programs of cfg.
func Installed(cfg Config) error {
	_, err := find(cfg)
	return err
}

func find(cfg Config) (found programs, err error) {
	need := func(needed bool, path *string, names ...string) {
		if needed {
			var absent error
			*path, absent = findProgram(names...)
			err = errors.Join(err, absent)
		}
	}
	if cfg.MySQL || cfg.Database != OneServer {
		found.mysqld, found.installer, err = findDatabase(cfg.Database)
	}
	need(cfg.Database.isGalera(), &found.galera, galeraLibraries(found.mysqld)...)
	need(cfg.Database == GaleraCluster, &found.haproxy, "haproxy")
	need(cfg.Database == GaleraCluster, &found.mariadb, "mariadb")
	if cfg.RedisTopology == OneRedis {
		need(cfg.Redis > 0, &found.redis, "redis-server", "valkey-server")
	} else {
		need(true, &found.redis, "redis-server")
	}
	need(cfg.RedisTopology == RedisCluster, &found.redisCLI, "redis-cli")
	need(cfg.Clocks, &found.faketime, "libfaketime.so.1", "/usr/lib/*/faketime/libfaketime.so.1")
	need(cfg.Clocks, &found.malloc, "libtcmalloc_minimal.so.4", "/usr/lib/*/libtcmalloc_minimal.so.4")
	need(cfg.Disk > 0, &found.strace, "strace")
	if cfg.Zookeeper > 0 {
		var absent error
		found.zookeeper, absent = findZookeeper()
		err = errors.Join(err, absent)
	}
	need(cfg.Etcd > 0, &found.etcd, "etcd")
	// Debian keeps the programs of each version of PostgreSQL apart, outside of PATH.
	need(cfg.Postgres, &found.initdb, "initdb", "/usr/lib/postgresql/*/bin/initdb")
	need(cfg.Postgres, &found.pgbouncer, "pgbouncer")
	need(cfg.Nginx, &found.nginx, "nginx")
	need(cfg.Prometheus, &found.prometheus, "prometheus")
	return found, err
}

// findProgram searches PATH, and the folders of daemons, which are often not in a user's PATH. The
// result is absolute, because servers run in folders of their own. A name may also be a path with a slash,
// or a pattern of one, of a program or a library.
func findProgram(names ...string) (string, error) {
	var called []string
	for _, name := range names {
		if strings.Contains(name, "/") {
			if found, _ := filepath.Glob(name); len(found) > 0 {
				return found[len(found)-1], nil
			}
			continue
		}
		called = append(called, name)
		for _, dir := range []string{"", "/usr/sbin", "/usr/local/sbin", "/usr/libexec", "/opt/homebrew/sbin"} {
			if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return filepath.Abs(path)
			}
		}
	}
	return "", missing(strings.Join(called, " or "))
}

// findDatabase finds MySQL 8 or newer, as docker-compose uses, or MariaDB if MySQL is missing. Several
// servers need MariaDB, because MySQL has other statements for replication, and no Galera.
func findDatabase(kind Database) (server, installer string, err error) {
	mysql, hasMySQL := findMySQL()
	if hasMySQL && kind == OneServer {
		return mysql, "", nil
	}
	server, err = findProgram("mariadbd")
	if err == nil {
		installer, err = findProgram("mariadb-install-db")
	}
	switch {
	case err == nil:
		return server, installer, nil
	case hasMySQL:
		return "", "", fmt.Errorf("rig: %s needs MariaDB, and this machine has MySQL only: %w", kind, errBesideMySQL)
	case server != "": // and its installer is missing
		return "", "", err
	case kind != OneServer:
		return "", "", missing(string(kind) + " needs MariaDB: mariadbd")
	default:
		return "", "", missing("mysqld 8 or newer, or mariadbd")
	}
}

// findMySQL finds MySQL 8 or newer. It reads the version, as MariaDB's server is mysqld as well.
func findMySQL() (mysqld string, ok bool) {
	path, err := findProgram("mysqld")
	if err != nil {
		return "", false
	}
	out, err := exec.Command(path, "--no-defaults", "--version").Output() //nolint:gosec,noctx // ends at once
	return path, err == nil && isMySQL(out)
}

var mysqlVersion = regexp.MustCompile(`Ver (\d+)\.\d+\.\d+`)

func isMySQL(version []byte) bool {
	m := mysqlVersion.FindSubmatch(version)
	if m == nil || bytes.Contains(version, []byte("MariaDB")) {
		return false
	}
	major, err := strconv.Atoi(string(m[1]))
	return err == nil && major >= 8
}

// errBesideMySQL: a pair needs MariaDB, which "make servers" cannot install beside MySQL.
var errBesideMySQL = fmt.Errorf("%w: Debian's packages mariadb-server-core and mariadb-client-core conflict with MySQL's packages; "+
	"`tools/real-mysql.sh mariadb` unpacks a MariaDB and prints the folder to put first in PATH", ErrMissing)

type zookeeperProgram struct {
	script    string // zkServer; if it is empty, java and classPath are set
	java      string
	classPath string // without the folder of the log configuration
}

// findZookeeper takes the jars in the folder ZOOKEEPER_JARS (the lib folder of a release), else
// Debian's jars, else the start script zkServer on the PATH, which Homebrew installs.
func findZookeeper() (found zookeeperProgram, err error) {
	dir := os.Getenv("ZOOKEEPER_JARS")
	// The manifest of zookeeper.jar names the other jars that ZooKeeper needs.
	debian, installed := debianJars("zookeeper.jar", "slf4j-log4j12.jar", "log4j-1.2.jar")
	switch {
	case dir != "":
		if jars, _ := filepath.Glob(filepath.Join(dir, "zookeeper*.jar")); len(jars) == 0 {
			return found, fmt.Errorf("rig: ZOOKEEPER_JARS: no zookeeper*.jar in %s", dir)
		}
		found.classPath = filepath.Join(dir, "*")
	case installed:
		// The manifest does not name this jar, which only TLS needs.
		found.classPath = debian + string(os.PathListSeparator) + "/usr/share/java/netty-codec.jar"
	default:
		if found.script, err = findProgram("zkServer", "zkServer.sh"); err != nil {
			err = missing("zookeeper (its jars in /usr/share/java or $ZOOKEEPER_JARS, or zkServer on the PATH)")
		}
		return found, err
	}
	found.java, err = findJava()
	return found, err
}

// debianJars returns a class path of jars where Debian's packages install them: libzookeeper-java,
// libslf4j-java and liblog4j1.2-java.
func debianJars(names ...string) (classPath string, installed bool) {
	installed = true
	for i, name := range names {
		names[i] = "/usr/share/java/" + name
		_, absent := os.Stat(names[i])
		installed = installed && absent == nil
	}
	return strings.Join(names, string(os.PathListSeparator)), installed
}

func findJava() (string, error) {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		return findProgram(filepath.Join(home, "bin", "java"), "java")
	}
	return findProgram("java")
}

// ZookeeperClient returns the command line of ZooKeeper's client, without the server's address: an
// installed zkCli, or the class in Debian's jars, with which the lab's ZooKeeper runs.
func ZookeeperClient() ([]string, error) {
	// The path is that of Debian's package zookeeper.
	scripts := []string{"zkCli.sh", "zkCli", "zkcli", "/usr/share/zookeeper/bin/zkCli.sh"}
	if dir := os.Getenv("ZOOKEEPER_JARS"); dir != "" {
		scripts = append(scripts, filepath.Join(dir, "..", "bin", "zkCli.sh")) // in a release, beside its lib
	}
	if path, err := findProgram(scripts...); err == nil {
		return []string{path}, nil
	}
	// slf4j-nop discards the client's log.
	classPath, installed := debianJars("zookeeper.jar", "slf4j-nop.jar")
	java, err := findJava()
	if err != nil || !installed {
		return nil, missing("zkCli")
	}
	return []string{java, "-XX:TieredStopAtLevel=1", "-cp", classPath, "org.apache.zookeeper.ZooKeeperMain"}, nil
}
