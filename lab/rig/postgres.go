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

// addPostgres adds PostgreSQL and a pgbouncer before it. Neither runs as root: then another user owns their
// data and can read their folders. DANGER: root must write no file into a folder of another user, who could put
// a link there.
func (r *Rig) addPostgres() {
	owner, err := notRoot()
	r.check(err)
	pg := r.newServer("postgres", filepath.Join(filepath.Dir(r.found.initdb), "postgres"), 0)
	pg.owner = owner
	data := pg.mkdir("data")
	conf := pg.conf("postgresql.conf", map[string]any{
		"Users": pg.conf("pg_hba.conf", nil), "Port": pg.port(), "Fsync": r.cfg.Fsync,
	})
	// In single-user mode, one statement a line comes from standard input.
	pg.write("setup.sql", "CREATE ROLE oversell LOGIN PASSWORD '"+r.secrets.user+"'\nCREATE DATABASE oversell OWNER oversell\n")
	pg.args = []string{"-D", data, "-c", "config_file=" + conf}
	pg.prepare = func(ctx context.Context) error { return pg.initPostgres(ctx, data) }

	pooler := r.newServer("pgbouncer", r.found.pgbouncer, 0)
	pooler.owner = owner
	users := pooler.write("users.txt", fmt.Sprintf("\"oversell\" %q\n", r.secrets.user))
	values := map[string]any{"Server": pg.port(), "Port": pooler.port(), "Users": users}
	pooler.args = []string{pooler.conf("pgbouncer.ini", values)}

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
func (s *Server) initPostgres(ctx context.Context, data string) error {
	setUp := func(path string, args ...string) error {
		c := command{path: path, args: args, dir: s.dir, owner: s.owner}
		return s.rig.run(ctx, "install postgres", "postgres-install.log", c)
	}
	err := setUp(s.rig.found.initdb, "--pgdata", data, "--username", "postgres", "--auth", "reject",
		"--encoding", "UTF8", "--no-locale", "--no-sync")
	if err != nil {
		return err
	}
	return setUp("/bin/sh", "-c", `exec "$0" --single -D "$1" postgres <setup.sql`, s.path, data)
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

// show makes the server's files and its folder readable for the group of owner, the account that the server runs as. nil is
// the present account, which can read them already.
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
