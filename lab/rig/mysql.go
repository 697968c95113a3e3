package rig

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"oversell/lab/backend"
)

// mysqlSetUp returns the statements that run at each start, before the first connection.
// Installers create root@localhost, and some root@127.0.0.1, without a password. Without name
// resolution these are two users, so the statements set both passwords.
func (s secrets) mysqlSetUp() string {
	return strings.NewReplacer("ADMIN", s.admin, "USERPW", s.user, "GUESTS", "`oversell\\_%`").Replace(
		`CREATE DATABASE IF NOT EXISTS oversell CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci;
ALTER USER 'root'@'localhost' IDENTIFIED BY 'ADMIN';
CREATE USER IF NOT EXISTS 'root'@'127.0.0.1';
ALTER USER 'root'@'127.0.0.1' IDENTIFIED BY 'ADMIN';
GRANT ALL PRIVILEGES ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION;
CREATE USER IF NOT EXISTS 'oversell'@'127.0.0.1' IDENTIFIED BY 'USERPW';
GRANT ALL PRIVILEGES ON oversell.* TO 'oversell'@'127.0.0.1';
GRANT ALL PRIVILEGES ON GUESTS.* TO 'oversell'@'127.0.0.1';
GRANT PROCESS ON *.* TO 'oversell'@'127.0.0.1';
`)
}

// mysqlOptions returns the settings for MySQL and MariaDB. Both default to REPEATABLE READ.
func mysqlOptions() []string {
	return []string{
		"--bind-address=" + loopback,
		"--skip-name-resolve",
		"--max-connections=600", // three replicas with pools of 100, bench, tests, consoles
		"--performance-schema=OFF",

		// For tables without a collation. Both have this one, unlike utf8mb4_0900_ai_ci.
		"--character-set-server=utf8mb4",
		"--collation-server=utf8mb4_unicode_ci",

		// All the data fit into a few pages.
		"--innodb-buffer-pool-size=64M",
		// A statement waits for a locked row at most this many seconds, as long as a request waits for
		// its lock by default. The limit also ends the wait of a disconnected client's statement.
		"--innodb-lock-wait-timeout=10",
	}
}

// mysqlFlush returns when InnoDB syncs its log.
func (r *Rig) mysqlFlush() string {
	if r.cfg.Fsync {
		return "--innodb-flush-log-at-trx-commit=1" // at each commit
	}
	// A commit is handed to the kernel at once and synced once a second. It survives the kill
	// of mysqld, but not a power cut, which takes the scratch folder as well. The default 1
	// would measure the disk: 5000 sales take half a minute if an fsync takes 5 ms.
	return "--innodb-flush-log-at-trx-commit=2"
}

func onlyMySQL() []string {
	return []string{
		"--mysqlx=OFF", "--skip-log-bin", "--loose-auto-generate-certs=OFF",
		"--loose-innodb-redo-log-capacity=64M", // MySQL before 8.0.30 does not have it
	}
}

func onlyMariaDB() []string {
	return []string{
		"--innodb-log-file-size=32M",
		// On by default since MariaDB 11.6, it would prevent mutex-in-tx's lost update with error
		// 1020. The tutorial's MySQL loses that update, so the lab must lose it too.
		"--loose-innodb-snapshot-isolation=OFF",
		// All tables are in one file. Otherwise CREATE TABLE with DATA DIRECTORY makes a file
		// in any folder, and MariaDB requires no privilege for it.
		"--innodb-file-per-table=OFF",
		"--skip-symbolic-links", // the same for MyISAM and Aria
	}
}

type database struct {
	*Server
	programs
	setUp   string    // statements, a line each, that run at each start
	more    []string  // more settings of the server, not of the installer
	conf    string    // the path of its configuration file; empty means none, not the default
	origin  *database // the data begin as a copy of origin's; nil means a new installation
	members string    // the addresses of all nodes of its Galera cluster
}

func (r *Rig) addMySQL(found programs) {
	switch {
	case r.cfg.Database == GaleraCluster:
		r.addGaleraCluster(found)
		return
	case r.cfg.Database.isPair():
		r.addPair(found)
	default:
		r.addDatabase(found, "mysql")
	}
	r.addrs.MySQL = r.secrets.mysql(labUser, r.databases[0].addr)
}

// addDatabase adds one MySQL or MariaDB server. Its settings may be changed until install runs.
func (r *Rig) addDatabase(found programs, name string) *database {
	d := &database{Server: r.newServer(name, found.mysqld, 0), programs: found, setUp: r.secrets.mysqlSetUp()}
	if files := r.cfg.Certificates; files != nil {
		d.more = []string{"--ssl-ca=" + files.CA, "--ssl-cert=" + files.Cert, "--ssl-key=" + files.Key}
	}
	d.mkdir("tmp")
	d.mkdir("files")
	d.prepare = d.install
	dsn := r.secrets.mysql(labUser, d.addr)
	d.probe = func(ctx context.Context) error {
		_, err := backend.MySQLValue(ctx, dsn, "SELECT 1")
		return err
	}
	r.databases = append(r.databases, d.Server)
	r.backends = append(r.backends, d.Server)
	return d
}

// install sets the server's arguments and creates the system tables. With d.origin set, it only
// waits until origin serves, because the data will be a copy of origin's.
func (d *database) install(ctx context.Context) error {
	shared := d.options()
	d.args = slices.Concat(shared, []string{
		"--port=" + d.port(),
		// Relative to the data folder: the path of a socket must not exceed 104 bytes.
		"--socket=mysql.sock",
		"--pid-file=" + filepath.Join(d.dir, "mysqld.pid"),
		// Even with root's password, no client may read or write the machine's files.
		"--secure-file-priv=" + filepath.Join(d.dir, "files"),
	}, d.more)
	if d.origin != nil { // its users and tables come with the copy
		return awaitNil(ctx, d.origin.name+" serves", d.origin.probe)
	}
	setUp := filepath.Join(d.dir, "setup.sql")
	if err := os.WriteFile(setUp, []byte(d.setUp), 0o600); err != nil {
		return fmt.Errorf("rig: %w", err)
	}
	d.args = append(d.args, "--init-file="+setUp)

	install := d.command
	install.args = slices.Concat(shared, []string{"--initialize-insecure"})
	if d.installer != "" {
		// --rpm keeps the owner of the machine's PAM plugin, which MariaDB may need.
		install.path = d.installer
		install.args = slices.Concat(shared, []string{"--rpm", "--auth-root-authentication-method=normal", "--skip-test-db"})
	}
	return d.rig.run(ctx, "install "+d.name, d.name+"-install.log", install)
}

// options returns the settings that the server and its installer share. Each database has its own
// tmpdir: in a shared /tmp, concurrent installations could delete each other's temporary tables.
func (d *database) options() []string {
	all := []string{"--no-defaults", "--datadir=" + filepath.Join(d.dir, "data"), "--tmpdir=" + filepath.Join(d.dir, "tmp")}
	if d.conf != "" {
		all[0] = "--defaults-file=" + d.conf // either must come first
	}
	all = append(all, d.rig.mysqlFlush())
	if os.Geteuid() == 0 {
		all = append(all, "--user=root") // otherwise both refuse to run as root
	}
	if d.installer == "" {
		return slices.Concat(all, mysqlOptions(), onlyMySQL())
	}
	return slices.Concat(all, mysqlOptions(), onlyMariaDB())
}
