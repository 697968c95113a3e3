package rig

import (
	"context"
	_ "embed" // for the logging configurations
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// zooCfg is ZooKeeper's configuration. A tick of 500 ms allows sessions from 1 s, so that
// a class does not wait long for the end of a dead holder's session.
const zooCfg = `tickTime=500
minSessionTimeout=1000
maxSessionTimeout=60000
clientPortAddress=` + loopback + `
clientPort=%s
dataDir=%s
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=srvr,mntr,cons,wchs,wchp
`

// ensembleCfg are the lines that a member has in addition: in ticks, how long it may take
// to find the leader and its data at first, and how far behind it may fall later. A leader
// that hears from no majority for that long gives up, 3 s here.
const ensembleCfg = `initLimit=10
syncLimit=6
`

// ZooKeeper logs by log4j up to 3.7 and in Debian, by logback since 3.8. Without a
// configuration the latter logs every packet.
//
//go:embed log4j.properties
var log4jProperties string

//go:embed logback.xml
var logbackXML string

// javaOptions make a small server that starts fast.
func javaOptions(dir string) []string {
	return []string{
		"-Xmx256m", "-XX:+UseSerialGC",
		"-XX:+ExitOnOutOfMemoryError", // a server that goes on without some of its threads answers at random
		"-XX:TieredStopAtLevel=1",     // the quick compiler only: half of the start time, and less load on two cores
		"-XX:-UsePerfData",            // its file in /tmp would outlive a kill
		"-Djava.io.tmpdir=" + dir,
		"-Djava.awt.headless=true",
		// As with MySQL: a write is handed to the kernel, not synced to the disk.
		"-Dzookeeper.forceSync=no",
		"-Dzookeeper.preAllocSize=4096", // KB; a log of 64 MB is much for a scratch folder
		// Of an ensemble: how long, in ms, a server without a leader at most waits before it
		// asks again. The default is a minute.
		"-Dzookeeper.fastleader.maxNotificationInterval=1000",
	}
}

// addZookeepers adds the one ZooKeeper, or the ensemble.
func (r *Rig) addZookeepers(program zookeeperProgram) error {
	if r.cfg.Ensemble <= 1 {
		return r.addZookeeper(program, "zookeeper", 0, "")
	}
	members := ensembleCfg
	for id := range r.cfg.Ensemble {
		var peers [2]int
		for i := range peers {
			port, err := r.ports.take(0)
			if err != nil {
				return err
			}
			peers[i] = port
		}
		members += fmt.Sprintf("server.%d=%s:%d:%d\n", id+1, loopback, peers[0], peers[1])
	}
	for id := range r.cfg.Ensemble {
		if err := r.addZookeeper(program, fmt.Sprintf("zookeeper-%d", id+1), id+1, members); err != nil {
			return err
		}
	}
	return nil
}

// addZookeeper adds a server with more lines of configuration. Its id is its number in
// the ensemble.
func (r *Rig) addZookeeper(program zookeeperProgram, name string, id int, more string) error {
	s, dir, err := r.newServer(name, 0)
	if err != nil {
		return err
	}
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		return fmt.Errorf("rig: %w", err)
	}
	_, port, _ := strings.Cut(s.addr, ":")
	files := map[string]string{
		"zoo.cfg":          fmt.Sprintf(zooCfg, port, data) + more,
		"data/myid":        strconv.Itoa(id), // read in an ensemble only
		"log4j.properties": log4jProperties,
		"logback.xml":      logbackXML,
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("rig: %w", err)
		}
	}
	s.command = func() *exec.Cmd { return program.command(dir) }
	// srvr is answered before the server takes sessions, but only then says its mode.
	s.probe = func(ctx context.Context) error { return ask(ctx, s.addr, "srvr\n", "Mode:") }
	r.backends = append(r.backends, s)
	r.addrs.Zookeeper = append(r.addrs.Zookeeper, s.addr)
	return nil
}

// command runs the configuration in dir.
func (z zookeeperProgram) command(dir string) *exec.Cmd {
	cfg := filepath.Join(dir, "zoo.cfg")
	if z.script != "" {
		cmd := exec.Command(z.script, "start-foreground", cfg) //nolint:gosec,noctx // found by us; ended by Server
		cmd.Dir = dir
		cmd.Env = environment("ZOOCFGDIR="+dir, "ZOO_LOG_DIR="+dir,
			"SERVER_JVMFLAGS="+strings.Join(javaOptions(dir), " "))
		return cmd
	}
	args := append(javaOptions(dir), "-cp", dir+string(os.PathListSeparator)+z.classPath,
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", cfg)
	cmd := exec.Command(z.java, args...) //nolint:gosec,noctx // found by us; ended by Server
	cmd.Dir = dir
	return cmd
}
