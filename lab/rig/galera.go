package rig

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"oversell/lab/backend"
)

// addGaleraCluster adds three nodes, and a proxy in front of them.
func (r *Rig) addGaleraCluster() {
	var nodes []*database
	for _, name := range []string{"mysql", "mysql-2", "mysql-3"} {
		nodes = append(nodes, r.addDatabase(name))
	}
	r.joinGalera(nodes...)
	r.addHAProxy(nodes)
}

// addHAProxy adds the proxy through which clients write at one node of the cluster.
func (r *Rig) addHAProxy(nodes []*database) {
	s := r.newBackend("haproxy", r.found.haproxy, r.cfg.Ports.Backends.MySQL, 0)
	// In a file, because every user can read arguments. A server without a certificate has no TLS.
	s.write("client.cnf", fmt.Sprintf("[client]\nuser=%s\npassword=%s\nskip-ssl\n", r.secrets.name, r.secrets.user))
	conf := s.conf("haproxy.cfg", map[string]any{
		"Addr": s.addr, "Check": s.script("galera_check"), "Programs": filepath.Dir(r.found.mariadb), "Nodes": nodes,
	})
	s.args = []string{"-db", "-f", conf} // -db: in the foreground
	// A read waits for all earlier commits of the cluster. By default, another node may return older data.
	r.addrs.MySQL = withOption(r.secrets.mysql(r.secrets.name, s.addr), "wsrep_sync_wait=1")
	s.probe = func(ctx context.Context) error {
		_, err := backend.MySQLValue(ctx, r.addrs.MySQL, "SELECT 1")
		return err
	}
	r.backends = append(r.backends, s)
}

// joinGalera makes a cluster of databases. The first one begins it, and each of the others starts
// after the one before it, with a copy of its data.
func (r *Rig) joinGalera(nodes ...*database) {
	scripts := filepath.Dir(nodes[0].script("wsrep_sst_copy"))
	env := environment("PATH="+scripts+string(os.PathListSeparator)+os.Getenv("PATH"), "NODES="+r.dir)
	var members []string
	for range nodes {
		members = append(members, r.takeAddr())
	}
	for i, d := range nodes {
		d.env = env
		d.members = strings.Join(members, ",")
		d.more = append(d.more,
			"--wsrep-on=ON", "--wsrep-provider="+r.found.galera, "--wsrep-sst-method=copy", "--wsrep-node-name="+d.name,
			"--wsrep-node-address="+members[i], "--wsrep-sst-donor="+donors(nodes, i),
			"--binlog-format=ROW", "--innodb-autoinc-lock-mode=2", // Galera works with no others
			"--loose-plugin-wsrep-provider=OFF", // from MariaDB 11 on, it would replace wsrep_provider_options
			fmt.Sprintf("--wsrep-provider-options=gmcast.listen_addr=tcp://%s;ist.recv_addr=%s;gcache.size=16M", members[i], r.takeAddr()),
		)
		if i > 0 {
			d.mkdir("data")
			d.origin = nodes[i-1]
		}
		d.before = d.join
	}
}

// donors returns the nodes that may give their data to node i, the last one first: replicas write at
// the first one, and a donor is busy.
func donors(nodes []*database, i int) string {
	var names string
	for _, d := range slices.Backward(nodes) {
		if d != nodes[i] {
			names += d.name + ","
		}
	}
	return names // the comma at the end means: or any other
}

// join sets how the server joins the cluster at its next start. The first node begins the cluster at
// its first start. A node that has run before must join those that run, with the position of its data.
// Otherwise it would begin a second cluster, or copy all data.
func (d *database) join() error {
	d.args = slices.DeleteFunc(d.args, func(arg string) bool {
		return strings.HasPrefix(arg, "--wsrep-cluster-address=") || strings.HasPrefix(arg, "--wsrep-start-position=")
	})
	_, err := os.Stat(filepath.Join(d.dir, "data", "grastate.dat"))
	switch {
	case errors.Is(err, fs.ErrNotExist) && d.origin == nil:
		d.args = append(d.args, "--wsrep-cluster-address=gcomm://")
		return nil
	case errors.Is(err, fs.ErrNotExist):
		d.args = append(d.args, "--wsrep-cluster-address=gcomm://"+d.members)
		return nil
	case err != nil:
		return fmt.Errorf("rig: %w", err)
	}
	// Its users and tables are those of the cluster.
	d.args = slices.DeleteFunc(d.args, func(arg string) bool { return strings.HasPrefix(arg, "--init-file=") })
	d.args = append(d.args, "--wsrep-cluster-address=gcomm://"+d.members)
	position, err := d.position()
	d.args = append(d.args, "--wsrep-start-position="+position)
	return err
}

var recovered = regexp.MustCompile(`WSREP: Recovered position: (\S+:\d+)`)

// position returns the cluster's name and the number of the last transaction in the server's data.
func (d *database) position() (string, error) {
	recoverData := d.command
	recoverData.args = append(slices.Clone(d.args), "--wsrep-recover")
	log := d.name + "-recover.log"
	if err := os.Remove(filepath.Join(d.rig.dir, log)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("rig: %w", err)
	}
	if err := d.rig.run(d.rig.ctx, "recover "+d.name, log, recoverData); err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(d.rig.dir, log)) //nolint:gosec // in our folder
	if err != nil {
		return "", fmt.Errorf("rig: %w", err)
	}
	found := recovered.FindSubmatch(text)
	if found == nil {
		return "", fmt.Errorf("rig: %s has no position of Galera in its data, see %s", d.name, log)
	}
	return string(found[1]), nil
}

// galeraLibraries returns the name and possible paths of Galera's library, which Debian's package galera-4
// installs. The first path is in an unpacked MariaDB.
func galeraLibraries(mariadbd string) []string {
	if path, err := filepath.EvalSymlinks(mariadbd); err == nil {
		mariadbd = path
	}
	const library = "libgalera_smm.so"
	return []string{
		library, filepath.Join(filepath.Dir(mariadbd), "..", "lib", "galera", library),
		"/usr/lib/galera/" + library, "/usr/lib*/galera-4/" + library, "/usr/lib*/" + library,
	}
}
