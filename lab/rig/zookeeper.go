package rig

import (
	"context"
	_ "embed" // for the logging configurations
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tickTime allows session timeouts of 1 s: a dead holder's session ends soon.
const tickTime = 500 * time.Millisecond

// zooCfg takes the tick in ms, and twice the tick. The extended types are nodes with a TTL, which the
// exercise znodes shows.
const zooCfg = `tickTime=%d
minSessionTimeout=%d
maxSessionTimeout=60000
clientPortAddress=` + loopback + `
clientPort=%s
dataDir=%s
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=srvr,mntr,cons,wchs,wchp
extendedTypesEnabled=true
`

// ensembleCfg is added for a member of an ensemble. Its numbers are ticks. initLimit limits the
// time to reach the leader and copy its data, syncLimit the lag of a connected member. A leader
// that has no majority for syncLimit (3 s here) gives up.
const ensembleCfg = `initLimit=10
syncLimit=6
`

// secureCfg is added for TLS. It takes the host:port, the file with the certificate and its key, and
// the file with the authority of the clients.
const secureCfg = `serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
secureClientPortAddress=` + loopback + `
secureClientPort=%s
ssl.keyStore.location=%s
ssl.keyStore.type=PEM
ssl.trustStore.location=%s
ssl.trustStore.type=PEM
ssl.clientAuth=need
`

// ZooKeeper logs by log4j up to version 3.7 and in Debian, and by logback since 3.8. Without a
// configuration, logback logs every packet.
//
//go:embed log4j.properties
var log4jProperties string

//go:embed logback.xml
var logbackXML string

func (r *Rig) javaOptions(dir string) []string {
	forceSync := "no" // as in MySQL, a write is passed to the kernel, and not synced to the disk
	if r.cfg.Fsync {
		forceSync = "yes"
	}
	return []string{
		"-Xmx256m", "-XX:+UseSerialGC",
		"-XX:+ExitOnOutOfMemoryError", // a server that continues without some of its threads answers at random
		"-XX:TieredStopAtLevel=1",     // the quick compiler only: half of the start time, and less load on two cores
		"-XX:-UsePerfData",            // its file in /tmp would outlive a kill
		"-Djava.io.tmpdir=" + dir,
		"-Djava.awt.headless=true",
		"-Dzookeeper.forceSync=" + forceSync,
		// How often it looks for empty containers and expired TTL nodes, in ms; a minute by default.
		"-Dznode.container.checkIntervalMs=1000",
		"-Dzookeeper.preAllocSize=4096", // KB; a log of 64 MB is much for a scratch folder
		// The longest pause, in ms, between messages of a leader election; a minute by default.
		"-Dzookeeper.fastleader.maxNotificationInterval=1000",
	}
}

func (r *Rig) addZookeepers(program zookeeperProgram) {
	names, members := memberNames("zookeeper", r.cfg.ZookeeperServers), ""
	if len(names) > 1 {
		members = ensembleCfg
		for i := range names {
			quorum := r.takeAddr()
			_, election, _ := strings.Cut(r.takeAddr(), ":")
			members += fmt.Sprintf("server.%d=%s:%s\n", i+1, quorum, election)
		}
	}
	for i, name := range names {
		r.addZookeeper(program, name, i+1, members)
	}
}

// addZookeeper adds a server. id is its number in the ensemble, members the ensemble's cfg lines.
func (r *Rig) addZookeeper(program zookeeperProgram, name string, id int, members string) {
	s := r.newServer(name, program.java, 0)
	data, tick := s.mkdir("data"), tickTime.Milliseconds()
	if r.cfg.Certificates != nil {
		members += r.secureZookeeper(s)
	}
	cfg := s.write("zoo.cfg", fmt.Sprintf(zooCfg, tick, 2*tick, s.port(), data)+members)
	s.write("data/myid", strconv.Itoa(id)) // read in an ensemble only
	s.write("log4j.properties", log4jProperties)
	s.write("logback.xml", logbackXML)
	options := slices.Concat(r.javaOptions(s.dir), r.addLogin(s))
	if program.script != "" {
		s.path, s.args = program.script, []string{"start-foreground", cfg}
		s.env = environment("ZOOCFGDIR="+s.dir, "ZOO_LOG_DIR="+s.dir, "SERVER_JVMFLAGS="+strings.Join(options, " "))
	} else {
		classPath := s.dir + string(os.PathListSeparator) + program.classPath
		s.args = slices.Concat(options, []string{"-cp", classPath, "org.apache.zookeeper.server.quorum.QuorumPeerMain", cfg})
	}
	// The answer to srvr has the line Mode only while the server accepts sessions.
	s.probe = func(ctx context.Context) error { return exchange(ctx, s.addr, "srvr\n", "Mode:") }
	r.backends = append(r.backends, s)
	r.addrs.Zookeeper = append(r.addrs.Zookeeper, s.addr)
}

// secureZookeeper returns the lines of the configuration for TLS. ZooKeeper reads the certificate
// and its key from one file, which the server writes anew at each start.
func (r *Rig) secureZookeeper(s *Server) string {
	files, addr := r.cfg.Certificates, r.takeAddr()
	r.addrs.ZookeeperTLS = append(r.addrs.ZookeeperTLS, addr)
	_, port, _ := strings.Cut(addr, ":")
	pair := filepath.Join(s.dir, "server.pem")
	s.before = func() error {
		cert, err1 := os.ReadFile(files.Cert)
		key, err2 := os.ReadFile(files.Key)
		if err := errors.Join(err1, err2, os.WriteFile(pair, slices.Concat(key, cert), 0o600)); err != nil { //nolint:gosec // in our folder
			return fmt.Errorf("rig: %w", err)
		}
		return nil
	}
	return fmt.Sprintf(secureCfg, port, pair, files.CA)
}
