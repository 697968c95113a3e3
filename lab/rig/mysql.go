package rig

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// mysqlSetUp runs before the server takes its first connection, at each start.
// root@localhost, which the installers create, does not match 127.0.0.1 when names are
// not resolved. It has no password until here. Neither has root@127.0.0.1, if an installer
// has created it: so the password is set for both, whoever created them.
func (s secrets) mysqlSetUp() string {
	return strings.NewReplacer("ADMIN", s.admin, "USERPW", s.user).Replace(
		`CREATE DATABASE IF NOT EXISTS oversell CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci;
ALTER USER 'root'@'localhost' IDENTIFIED BY 'ADMIN';
CREATE USER IF NOT EXISTS 'root'@'127.0.0.1';
ALTER USER 'root'@'127.0.0.1' IDENTIFIED BY 'ADMIN';
GRANT ALL PRIVILEGES ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION;
CREATE USER IF NOT EXISTS 'oversell'@'127.0.0.1' IDENTIFIED BY 'USERPW';
GRANT ALL PRIVILEGES ON oversell.* TO 'oversell'@'127.0.0.1';
`)
}

// mysqlOptions are the settings of MySQL and MariaDB alike. What is not here has the
// server's default: REPEATABLE READ above all.
func mysqlOptions() []string {
	return []string{
		"--bind-address=" + loopback,
		"--skip-name-resolve",
		"--max-connections=600", // three replicas with pools of 100, bench, tests, consoles
		"--performance-schema=OFF",

		// The tables name a collation of their own. All else, such as a table that a
		// student creates, gets one that both have: utf8mb4_0900_ai_ci is MySQL's alone.
		"--character-set-server=utf8mb4",
		"--collation-server=utf8mb4_unicode_ci",

		// The whole shop is a few pages.
		"--innodb-buffer-pool-size=64M",
		// A commit is handed to the kernel at once and synced once a second: it survives
		// the kill of mysqld, which the lab does, and not a power cut, which takes the
		// scratch folder as well. 1, the default, would measure the disk: 5000 sales take
		// half a minute on a laptop whose fsync takes 5 ms.
		"--innodb-flush-log-at-trx-commit=2",
		// Seconds that a statement waits for a row. As long as a request waits for its
		// lock by default: a wait whose client is gone ends too.
		"--innodb-lock-wait-timeout=10",
	}
}

// onlyMySQL and onlyMariaDB are the settings that the other does not know.
func onlyMySQL() []string {
	return []string{
		"--mysqlx=OFF", "--skip-log-bin", "--loose-auto-generate-certs=OFF",
		"--loose-innodb-redo-log-capacity=64M", // MySQL before 8.0.30 does not have it
	}
}

func onlyMariaDB() []string {
	return []string{
		"--innodb-log-file-size=32M",
		// On by default from 11.6 on, it refuses the lost update of mutex-in-tx with error
		// 1020. The tutorial's MySQL loses it, and so does the lab.
		"--loose-innodb-snapshot-isolation=OFF",
		// All tables are in one file. Otherwise CREATE TABLE with DATA DIRECTORY makes a file
		// in any folder, and MariaDB asks no privilege for it.
		"--innodb-file-per-table=OFF",
		"--skip-symbolic-links", // the same for MyISAM and Aria
	}
}

// database starts MySQL or MariaDB in a folder.
type database struct {
	programs
	server *Server
	dir    string
	port   string
	setUp  string   // statements, a line each, that run at each start
	args   []string // more settings of the server, not of the installer
	conf   string   // its configuration file, if it has one; it has no default
	env    []string // more variables
}

func (r *Rig) addMySQL(found programs) error {
	if r.cfg.Database.isPair() {
		return r.addPair(found)
	}
	_, err := r.addDatabase(found, "mysql")
	return err
}

// addDatabase adds one server; its settings may still be changed.
func (r *Rig) addDatabase(found programs, name string) (*database, error) {
	s, dir, err := r.newServer(name, 0)
	if err != nil {
		return nil, err
	}
	for _, sub := range []string{"tmp", "files"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, fmt.Errorf("rig: %w", err)
		}
	}
	_, port, _ := strings.Cut(s.addr, ":")
	d := &database{programs: found, server: s, dir: dir, port: port, setUp: r.secrets.mysqlSetUp()}
	s.prepare, s.command = d.install, d.command
	dsn := r.secrets.mysql(labUser, s.addr)
	if s.probe, err = mysqlProbe(dsn); err != nil {
		return nil, err
	}
	r.backends = append(r.backends, s)
	if name == nodeB {
		r.mysqlB = dsn
	} else {
		r.addrs.MySQL = dsn
	}
	return d, nil
}

func (d *database) command() *exec.Cmd {
	args := []string{
		"--port=" + d.port,
		// Relative to the data folder: a path to a socket must not exceed 104 bytes.
		"--socket=mysql.sock",
		"--pid-file=" + filepath.Join(d.dir, "mysqld.pid"),
		// Not even root's password must become a way to the machine's files.
		"--secure-file-priv=" + filepath.Join(d.dir, "files"),
	}
	if d.setUp != "" {
		args = append(args, "--init-file="+d.setUpFile())
	}
	cmd := d.cmd(d.mysqld, append(args, d.args...)...)
	cmd.Env = environment(d.env...)
	return cmd
}

func (d *database) setUpFile() string { return filepath.Join(d.dir, "setup.sql") }

// install creates the system tables.
func (d *database) install(ctx context.Context) error {
	if err := os.WriteFile(d.setUpFile(), []byte(d.setUp), 0o600); err != nil {
		return fmt.Errorf("rig: %w", err)
	}
	cmd := d.cmd(d.mysqld, "--initialize-insecure")
	if d.installer != "" {
		// --rpm keeps the script from changing the owner of the machine's PAM plugin,
		// which a MariaDB in service may need.
		cmd = d.cmd(d.installer, "--rpm", "--auth-root-authentication-method=normal", "--skip-test-db")
	}
	r, name := d.server.rig, d.server.name
	return r.run(ctx, "install "+name, filepath.Join(r.dir, name+"-install.log"), cmd)
}

// cmd runs program, the server or the installer, with the settings that they share:
// the log files must be made in the size that the server expects, and two that are being
// installed at once must not share /tmp, where they lose each other's temporary tables.
func (d *database) cmd(program string, args ...string) *exec.Cmd {
	all := []string{"--no-defaults", "--datadir=" + filepath.Join(d.dir, "data"), "--tmpdir=" + filepath.Join(d.dir, "tmp")}
	if d.conf != "" {
		all[0] = "--defaults-file=" + d.conf // either must come first
	}
	all = append(all, mysqlOptions()...)
	if d.installer == "" {
		all = append(all, onlyMySQL()...)
	} else {
		all = append(all, onlyMariaDB()...)
	}
	if os.Geteuid() == 0 {
		all = append(all, "--user=root") // else both refuse to run as root
	}
	cmd := exec.Command(program, append(all, args...)...) //nolint:gosec,noctx // found by us; ended by Server
	cmd.Dir = d.dir
	return cmd
}

// mysqlProbe logs in and runs a statement.
func mysqlProbe(dsn string) (func(context.Context) error, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, fmt.Errorf("rig: %w", err)
	}
	cfg.Logger = &mysql.NopLogger{} // it would print each refused connection
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("rig: %w", err)
	}
	return func(ctx context.Context) error {
		db := sql.OpenDB(connector)
		defer func() { _ = db.Close() }()
		var one int
		return db.QueryRowContext(ctx, "SELECT 1").Scan(&one)
	}, nil
}
