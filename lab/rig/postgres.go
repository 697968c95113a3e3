package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"oversell/lab/backend"
)

// postgresUsers lets the role oversell in, with its password in clear text, which does not leave the machine. The
// role is no superuser, so it can't write files.
const postgresUsers = "host oversell oversell 127.0.0.1/32 password\n"

// postgresConf keeps everything in the data folder. Kill removes no shared memory, so the segments of
// parallel queries are files, and the one segment that PostgreSQL insists on is in a namespace that
// ends with its processes: see childAttr.
const postgresConf = `hba_file = '%s'
listen_addresses = '127.0.0.1'
port = %s
unix_socket_directories = ''
dynamic_shared_memory_type = mmap
shared_buffers = 16MB
max_connections = 400
fsync = %s
`

// pgbouncerConf gives a connection of the server to a client for one transaction, and then to the
// next client: https://www.pgbouncer.org/features.html
const pgbouncerConf = `[databases]
oversell = host=127.0.0.1 port=%s dbname=oversell user=oversell
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = plain
auth_file = %s
pool_mode = transaction
max_client_conn = 400
default_pool_size = 100
ignore_startup_parameters = extra_float_digits
`

// addPostgres adds PostgreSQL and a pgbouncer before it. Neither runs as root: then another user owns their
// data and can read their folders. DANGER: root must write no file into a folder of another user, who could put
// a link there.
func (r *Rig) addPostgres(found programs) {
	owner, err := notRoot()
	r.check(err)
	pg := r.newServer("postgres", filepath.Join(found.postgres, "postgres"), 0)
	pg.owner = owner
	data := pg.mkdir("data")
	fsync := map[bool]string{true: "on", false: "off"}[r.cfg.Fsync]
	conf := pg.write("postgresql.conf", fmt.Sprintf(postgresConf, pg.write("pg_hba.conf", postgresUsers), pg.port(), fsync))
	// In single-user mode, one statement a line comes from standard input.
	pg.write("setup.sql", "CREATE ROLE oversell LOGIN PASSWORD '"+r.secrets.user+"'\nCREATE DATABASE oversell OWNER oversell\n")
	pg.args = []string{"-D", data, "-c", "config_file=" + conf}
	pg.prepare = func(ctx context.Context) error { return pg.initPostgres(ctx, found.postgres, data) }

	pooler := r.newServer("pgbouncer", found.pgbouncer, 0)
	pooler.owner = owner
	users := pooler.write("users.txt", fmt.Sprintf("%q %q\n", labUser, r.secrets.user))
	pooler.args = []string{pooler.write("pgbouncer.ini", fmt.Sprintf(pgbouncerConf, pg.port(), pooler.port(), users))}

	r.check(pg.show(owner, "postgresql.conf", "pg_hba.conf", "setup.sql"))
	r.check(pooler.show(owner, "pgbouncer.ini", "users.txt"))
	if owner != nil {
		r.check(os.Chown(data, int(owner.Uid), int(owner.Gid)))
	}
	r.backends = append(r.backends, pg, pooler)
	r.addrs.Postgres, r.addrs.Pgbouncer = r.secrets.postgres(pg.addr), r.secrets.postgres(pooler.addr)
	for _, s := range []*Server{pg, pooler} { // either serves when it begins a session
		s.probe = func(ctx context.Context) error {
			_, err := backend.PostgresVersion(ctx, r.secrets.postgres(s.addr))
			return err
		}
	}
}

// initPostgres creates the data folder with the role and the database of the lab.
func (s *Server) initPostgres(ctx context.Context, programs, data string) error {
	setUp := func(name string, args ...string) error {
		c := command{path: filepath.Join(programs, name), args: args, dir: s.dir, owner: s.owner}
		return s.rig.run(ctx, name, "postgres-install.log", c)
	}
	err := setUp("initdb", "--pgdata", data, "--username", "postgres", "--auth", "reject", "--encoding", "UTF8", "--no-locale", "--no-sync")
	if err != nil {
		return err
	}
	c := command{path: "/bin/sh", args: []string{"-c", `exec "$0" --single -D "$1" postgres <setup.sql`, s.path, data}, dir: s.dir, owner: s.owner}
	return s.rig.run(ctx, "set up postgres", "postgres-install.log", c)
}

// notRoot returns a user that may run PostgreSQL: nil for this one, or postgres or nobody instead of
// root.
func notRoot() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // nil means this user
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	if err != nil {
		return nil, fmt.Errorf("rig: PostgreSQL does not run as root: %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(err, err2)
}

// show lets the owner's group read the server's files, and enter its folder. An owner of nil is this user, who can do
// both already.
func (s *Server) show(owner *syscall.Credential, files ...string) error {
	if owner == nil {
		return nil
	}
	err := errors.Join(os.Chmod(s.rig.dir, 0o711), os.Chmod(s.dir, 0o755)) //nolint:gosec // no one can list the first
	// The files stay root's, and have the password.
	for _, name := range files {
		file := filepath.Join(s.dir, name)
		err = errors.Join(err, os.Chown(file, -1, int(owner.Gid)), os.Chmod(file, 0o640)) //nolint:gosec // for the group
	}
	for dir := filepath.Dir(s.rig.dir); err == nil && dir != "/"; dir = filepath.Dir(dir) {
		info, missing := os.Stat(dir)
		if err = missing; err == nil && info.Mode()&0o001 == 0 {
			return fmt.Errorf("rig: PostgreSQL does not run as root, and other users cannot enter %s, where its files are: "+
				"set TMPDIR to a folder that they can enter, such as /tmp", dir)
		}
	}
	return err
}
