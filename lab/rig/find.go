package rig

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ErrMissing is wrapped by the error of Start when a program is not installed.
var ErrMissing = errors.New("not installed")

func missing(name string) error {
	return fmt.Errorf("rig: %s: %w: run \"make servers\"", name, ErrMissing)
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
	zookeeper  zookeeperProgram
	etcd       string
	nginx      string
	clock      fakeClock
	postgres   string // the folder of PostgreSQL's programs
	pgbouncer  string
	prometheus string
}

// Installed returns nil, or an error that wraps ErrMissing and names all missing programs of cfg.
func Installed(cfg Config) error {
	_, err := find(cfg)
	return err
}

func find(cfg Config) (programs, error) {
	var found programs
	var errs [11]error
	if cfg.MySQL || cfg.Database != OneServer {
		found.mysqld, found.installer, errs[0] = findDatabase(cfg.Database)
	}
	if cfg.Redis > 0 {
		found.redis, errs[1] = findProgram("redis-server", "valkey-server")
	}
	if cfg.RedisTopology != OneRedis && errs[1] == nil {
		found.redis, errs[1] = findProgram("redis-server")
		if cfg.RedisTopology == RedisCluster && errs[1] == nil {
			found.redisCLI, errs[1] = findProgram("redis-cli")
		}
	}
	if cfg.Zookeeper {
		found.zookeeper, errs[2] = findZookeeper()
	}
	if cfg.Nginx {
		found.nginx, errs[3] = findProgram("nginx")
	}
	if cfg.Clocks {
		found.clock, errs[4] = findFakeClock()
	}
	if cfg.Database.isGalera() {
		found.galera, errs[5] = findFile("libgalera_smm.so, of Debian's package galera-4", galeraLibraries(found.mysqld)...)
	}
	if cfg.Database == GaleraCluster {
		found.haproxy, errs[9] = findProgram("haproxy")
		found.mariadb, errs[10] = findProgram("mariadb")
	}
	if cfg.Etcd {
		found.etcd, errs[6] = findProgram("etcd")
	}
	if cfg.Postgres {
		if found.postgres, found.pgbouncer = findPostgres(); found.postgres == "" || found.pgbouncer == "" {
			errs[7] = fmt.Errorf("rig: PostgreSQL or pgbouncer: %w: install Debian's packages postgresql and pgbouncer", ErrMissing)
		}
	}
	if cfg.Prometheus {
		if found.prometheus, errs[8] = findProgram("prometheus"); errs[8] != nil {
			errs[8] = fmt.Errorf("rig: Prometheus: %w: run \"make observe\", or install Debian's package prometheus", ErrMissing)
		}
	}
	return found, errors.Join(errs[:]...)
}

func findFile(name string, patterns ...string) (string, error) {
	for _, pattern := range patterns {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return found[0], nil
		}
	}
	return "", missing(name)
}

// findProgram searches PATH, and the folders of daemons, which are often not in a user's PATH. The
// result is absolute, because servers run in folders of their own.
func findProgram(names ...string) (string, error) {
	for _, name := range names {
		for _, dir := range []string{"", "/usr/sbin", "/usr/local/sbin", "/usr/libexec", "/opt/homebrew/sbin"} {
			if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return filepath.Abs(path)
			}
		}
	}
	return "", missing(strings.Join(names, " or "))
}

// findPostgres returns the folder of PostgreSQL's programs and the path of pgbouncer, or empty
// paths. Debian keeps the programs of each version apart, outside of PATH.
func findPostgres() (folder, pgbouncer string) {
	pgbouncer, _ = findProgram("pgbouncer")
	if initdb, err := findProgram("initdb"); err == nil {
		return filepath.Dir(initdb), pgbouncer
	}
	versions, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if len(versions) > 0 {
		folder = versions[len(versions)-1]
	}
	return folder, pgbouncer
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
	// Debian's packages libzookeeper-java, libslf4j-java and liblog4j1.2-java install these three
	// jars. The manifest of zookeeper.jar names the other jars that ZooKeeper needs.
	debian := []string{"/usr/share/java/zookeeper.jar", "/usr/share/java/slf4j-log4j12.jar", "/usr/share/java/log4j-1.2.jar"}
	isMissing := func(path string) bool { _, err := os.Stat(path); return err != nil }
	switch dir := os.Getenv("ZOOKEEPER_JARS"); {
	case dir != "":
		if jars, _ := filepath.Glob(filepath.Join(dir, "zookeeper*.jar")); len(jars) == 0 {
			return found, fmt.Errorf("rig: ZOOKEEPER_JARS: no zookeeper*.jar in %s", dir)
		}
		found.classPath = filepath.Join(dir, "*")
	case !slices.ContainsFunc(debian, isMissing):
		// The manifest does not name this jar, which only TLS needs.
		found.classPath = strings.Join(append(debian, "/usr/share/java/netty-codec.jar"), string(os.PathListSeparator))
	default:
		if found.script, err = findProgram("zkServer", "zkServer.sh"); err != nil {
			err = missing("zookeeper (its jars in /usr/share/java or $ZOOKEEPER_JARS, or zkServer on the PATH)")
		}
		return found, err
	}
	if home := os.Getenv("JAVA_HOME"); home != "" {
		if found.java, err = exec.LookPath(filepath.Join(home, "bin", "java")); err == nil {
			return found, nil
		}
	}
	found.java, err = findProgram("java")
	return found, err
}

// ZookeeperClient returns the command line of ZooKeeper's client, without the server's address: an
// installed zkCli, or the class in Debian's jars, with which the lab's ZooKeeper runs.
func ZookeeperClient() ([]string, error) {
	scripts := []string{"/usr/share/zookeeper/bin/zkCli.sh"} // of Debian's package zookeeper
	if dir := os.Getenv("ZOOKEEPER_JARS"); dir != "" {
		scripts = append(scripts, filepath.Join(dir, "..", "bin", "zkCli.sh")) // in a release, beside its lib
	}
	if path, err := findProgram("zkCli.sh", "zkCli", "zkcli"); err == nil {
		return []string{path}, nil
	}
	for _, script := range scripts {
		if path, err := exec.LookPath(script); err == nil {
			return []string{path}, nil
		}
	}
	// slf4j-nop discards the client's log.
	jars := []string{"/usr/share/java/zookeeper.jar", "/usr/share/java/slf4j-nop.jar"}
	java, err := findProgram("java")
	for _, jar := range jars {
		if _, absent := os.Stat(jar); absent != nil {
			err = absent
		}
	}
	if err != nil {
		return nil, missing("zkCli")
	}
	return []string{java, "-XX:TieredStopAtLevel=1", "-cp", strings.Join(jars, string(os.PathListSeparator)), "org.apache.zookeeper.ZooKeeperMain"}, nil
}
