package rig

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"oversell/lab/backend"
)

type database struct {
	*Server
	setUp   string    // statements, a line each, that run at each start
	more    []string  // more settings of the server, not of the installer
	origin  *database // the data begin as a copy of origin's; nil means a new installation
	members string    // the addresses of all nodes of its Galera cluster
}

func (r *Rig) addMySQL() {
	switch {
	case r.cfg.Database == GaleraCluster:
		r.addGaleraCluster()
		return
	case r.cfg.Database.isPair():
		r.addPair()
	default:
		r.addDatabase("mysql")
	}
	r.addrs.MySQL = r.secrets.mysql(r.secrets.name, r.databases[0].addr)
}

// addDatabase adds one MySQL or MariaDB server. Its settings may be changed until install runs.
func (r *Rig) addDatabase(name string) *database {
	port := 0
	if r.cfg.Database == OneServer {
		port = r.cfg.Ports.Backends.MySQL
	}
	d := &database{Server: r.newBackend(name, r.found.mysqld, port, 0)}
	values := map[string]any{
		"Dir": d.dir, "Port": d.port(), "MariaDB": r.found.installer != "", "Root": os.Geteuid() == 0,
		"Fsync": r.cfg.Fsync, "TLS": r.cfg.Certificates, "Galera": "",
	}
	if r.cfg.Database.isGalera() {
		values["Galera"] = r.secrets.galera
	}
	d.args = []string{"--defaults-file=" + d.conf("my.cnf", values)} // must come first
	d.setUp = r.render("setup.sql", map[string]any{"Admin": r.secrets.admin, "User": r.secrets.name, "Password": r.secrets.user})
	d.mkdir("tmp")
	d.mkdir("files")
	d.prepare = d.install
	dsn := r.secrets.mysql(r.secrets.name, d.addr)
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
	shared := d.args[:1] // also of the installer
	d.args = slices.Concat(shared, d.more)
	if d.origin != nil { // its users and tables come with the copy
		return Await(ctx, d.origin.name+" serves", d.origin.probe)
	}
	setUp := filepath.Join(d.dir, "setup.sql")
	if err := os.WriteFile(setUp, []byte(d.setUp), 0o600); err != nil {
		return fmt.Errorf("rig: %w", err)
	}
	d.args = append(d.args, "--init-file="+setUp)

	install := d.command
	install.args = slices.Concat(shared, []string{"--initialize-insecure"})
	if installer := d.rig.found.installer; installer != "" {
		// --rpm keeps the owner of the machine's PAM plugin, which MariaDB may need.
		install.path = installer
		install.args = slices.Concat(shared, []string{"--rpm", "--auth-root-authentication-method=normal", "--skip-test-db"})
	}
	return d.rig.run(ctx, "install "+d.name, d.name+"-install.log", install)
}
