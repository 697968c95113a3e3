package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func (r *Rig) addZookeepers() {
	names := memberNames("zookeeper", r.cfg.Zookeeper)
	var members []string // the lines of an ensemble's configuration
	for i := range names {
		if len(names) > 1 {
			quorum := r.takeAddr()
			_, election, _ := strings.Cut(r.takeAddr(), ":")
			members = append(members, fmt.Sprintf("server.%d=%s:%s", i+1, quorum, election))
		}
	}
	for i, name := range names {
		r.addZookeeper(name, i+1, members)
	}
}

// addZookeeper adds a server. id is its number in the ensemble.
func (r *Rig) addZookeeper(name string, id int, members []string) {
	program := r.found.zookeeper
	s := r.newBackend(name, program.java, r.cfg.Ports.Backends.Zookeeper, id-1)
	values := map[string]any{"Port": s.port(), "Data": s.mkdir("data"), "Members": members, "CA": ""}
	if r.cfg.Certificates != nil {
		r.secureZookeeper(s, values)
	}
	cfg := s.conf("zoo.cfg", values)
	s.write("data/myid", strconv.Itoa(id)) // read in an ensemble only
	// ZooKeeper logs by log4j up to version 3.7 and in Debian, and by logback since 3.8. Without a
	// configuration, logback logs every packet.
	s.conf("log4j.properties", nil)
	s.conf("logback.xml", nil)
	options := strings.Fields(r.render("java.options", map[string]any{"Dir": s.dir, "Fsync": r.cfg.Fsync}))
	options = append(options, r.addLogin(s)...)
	if program.script != "" {
		s.path, s.args = program.script, []string{"start-foreground", cfg}
		s.env = environment("ZOOCFGDIR="+s.dir, "ZOO_LOG_DIR="+s.dir, "SERVER_JVMFLAGS="+strings.Join(options, " "))
	} else {
		classPath := s.dir + string(os.PathListSeparator) + program.classPath
		s.args = slices.Concat(options, []string{"-cp", classPath, "org.apache.zookeeper.server.quorum.QuorumPeerMain", cfg})
	}
	// The answer to srvr has the line Mode only while the server accepts sessions.
	s.probe = func(ctx context.Context) error { return answers(ctx, s.addr, "srvr\n", "Mode:") }
	r.backends = append(r.backends, s)
	r.addrs.Zookeeper = append(r.addrs.Zookeeper, s.addr)
}

// secureZookeeper adds the values for TLS. ZooKeeper reads the certificate and its key from one file, which
// the server writes anew at each start.
func (r *Rig) secureZookeeper(s *Server, values map[string]any) {
	files, addr := r.cfg.Certificates, r.takeAddr()
	r.addrs.ZookeeperTLS = append(r.addrs.ZookeeperTLS, addr)
	pair := filepath.Join(s.dir, "server.pem")
	_, values["SecurePort"], _ = strings.Cut(addr, ":")
	values["Pair"], values["CA"] = pair, files.CA
	s.before = func() error {
		cert, err1 := os.ReadFile(files.Cert)
		key, err2 := os.ReadFile(files.Key)
		if err := errors.Join(err1, err2, os.WriteFile(pair, slices.Concat(key, cert), 0o600)); err != nil { //nolint:gosec // in our folder
			return fmt.Errorf("rig: %w", err)
		}
		return nil
	}
}
