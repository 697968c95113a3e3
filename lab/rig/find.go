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
var ErrMissing = errors.New(`not installed: run "make servers"`)

// programs are the paths of what a rig starts; those it does not need are empty.
type programs struct {
	mysqld    string // of MySQL 8 or newer, or of MariaDB
	installer string // mariadb-install-db; empty for MySQL
	galera    string // the library that makes a cluster of MariaDB
	redis     string
	zookeeper zookeeperProgram
	etcd      string
	nginx     string
	clock     fakeClock
}

// Installed returns nil if all programs that cfg needs are installed. Its error wraps
// ErrMissing, and names all that are missing.
func Installed(cfg Config) error {
	_, err := find(cfg)
	return err
}

// find looks for all the programs that cfg needs. The error names all that are missing.
func find(cfg Config) (programs, error) {
	var found programs
	var errs [7]error
	switch {
	case cfg.Database.isPair():
		found.mysqld, found.installer, errs[0] = findPair(cfg.Database)
	case cfg.MySQL:
		found.mysqld, found.installer, errs[0] = findDatabase()
	}
	if cfg.Redis > 0 {
		found.redis, errs[1] = findProgram("redis-server", "valkey-server")
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
	if cfg.Database == Galera {
		found.galera, errs[5] = findGalera(galeraPlaces(found.mysqld)...)
	}
	if cfg.Etcd {
		found.etcd, errs[6] = findProgram("etcd")
	}
	return found, errors.Join(errs[:]...)
}

// findProgram returns the path of the first of names that is on the PATH, or where
// distributions keep daemons that a user's PATH leaves out.
func findProgram(names ...string) (string, error) {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return absolute(path)
		}
		for _, dir := range []string{"/usr/sbin", "/usr/local/sbin", "/usr/libexec", "/opt/homebrew/sbin"} {
			if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("rig: %s: %w", strings.Join(names, " or "), ErrMissing)
}

// absolute is needed as children run in folders of their own.
func absolute(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("rig: %w", err)
	}
	return path, nil
}

// mysqlVersion takes the major version from the output of `mysqld --version`.
var mysqlVersion = regexp.MustCompile(`Ver (\d+)\.\d+\.\d+`)

// findDatabase prefers MySQL 8 or newer, as docker-compose runs MySQL too, to MariaDB.
// The name says little: MariaDB's packages call their server mysqld as well.
func findDatabase() (mysqld, installer string, err error) {
	if path, ok := findMySQL(); ok {
		return path, "", nil
	}
	return findMariaDB("mysqld 8 or newer, or mariadbd")
}

func findMySQL() (mysqld string, ok bool) {
	path, err := findProgram("mysqld")
	if err != nil {
		return "", false
	}
	out, err := exec.Command(path, "--no-defaults", "--version").Output() //nolint:gosec,noctx // ends at once
	return path, err == nil && isMySQL(out)
}

// findPair looks for MariaDB: MySQL has other statements for replication, and no Galera.
func findPair(pair Database) (mariadbd, installer string, err error) {
	mariadbd, installer, err = findMariaDB(string(pair) + " needs MariaDB: mariadbd")
	if _, ok := findMySQL(); ok && errors.Is(err, ErrMissing) {
		return "", "", fmt.Errorf("rig: %s needs MariaDB, and this machine has MySQL only: %w", pair, errBesideMySQL)
	}
	return mariadbd, installer, err
}

// besideMySQL is ErrMissing where "make servers" does not help.
type besideMySQL string

func (b besideMySQL) Error() string { return string(b) }

func (besideMySQL) Is(target error) bool { return target == ErrMissing }

const errBesideMySQL = besideMySQL("Debian's packages mariadb-server-core and mariadb-client-core may not be installed beside MySQL's; " +
	"`tools/real-mysql.sh mariadb` unpacks a MariaDB and prints the folder to put first in PATH")

// findMariaDB says what was wanted when it is not there.
func findMariaDB(wanted string) (mariadbd, installer string, err error) {
	mariadbd, err = findProgram("mariadbd")
	if err != nil {
		return "", "", fmt.Errorf("rig: %s: %w", wanted, ErrMissing)
	}
	installer, err = findProgram("mariadb-install-db")
	return mariadbd, installer, err
}

func isMySQL(version []byte) bool {
	m := mysqlVersion.FindSubmatch(version)
	if m == nil || bytes.Contains(version, []byte("MariaDB")) {
		return false
	}
	major, err := strconv.Atoi(string(m[1]))
	return err == nil && major >= 8
}

// zookeeperProgram is either a start script, or java with a class path.
type zookeeperProgram struct {
	script    string // zkServer; if empty:
	java      string
	classPath string // without the folder of the log configuration
}

// debianJars are what Debian's libzookeeper-java, libslf4j-java and liblog4j1.2-java
// install. zookeeper.jar's manifest names the others that it needs.
func debianJars() []string {
	return []string{"/usr/share/java/zookeeper.jar", "/usr/share/java/slf4j-log4j12.jar", "/usr/share/java/log4j-1.2.jar"}
}

// findZookeeper looks for the folder ZOOKEEPER_JARS (the lib folder of a release), for
// Debian's jars, then for zkServer, Homebrew's start script, on the PATH.
func findZookeeper() (zookeeperProgram, error) {
	if dir := os.Getenv("ZOOKEEPER_JARS"); dir != "" {
		if jars, _ := filepath.Glob(filepath.Join(dir, "zookeeper*.jar")); len(jars) == 0 {
			return zookeeperProgram{}, fmt.Errorf("rig: ZOOKEEPER_JARS: no zookeeper*.jar in %s", dir)
		}
		java, err := findJava()
		return zookeeperProgram{java: java, classPath: filepath.Join(dir, "*")}, err
	}
	if jars := debianJars(); allExist(jars) {
		java, err := findJava()
		return zookeeperProgram{java: java, classPath: strings.Join(jars, string(os.PathListSeparator))}, err
	}
	if script, err := findProgram("zkServer", "zkServer.sh"); err == nil {
		return zookeeperProgram{script: script}, nil
	}
	return zookeeperProgram{}, fmt.Errorf("rig: zookeeper (its jars in /usr/share/java or $ZOOKEEPER_JARS, or zkServer on the PATH): %w", ErrMissing)
}

func findJava() (string, error) {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		if path, err := exec.LookPath(filepath.Join(home, "bin", "java")); err == nil {
			return path, nil
		}
	}
	return findProgram("java")
}

func allExist(paths []string) bool {
	for _, path := range paths {
		if _, err := os.Stat(path); err != nil {
			return false
		}
	}
	return true
}
