package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"oversell/lab/load"
	"oversell/lab/player"
	"oversell/lab/rig"
	"oversell/trial/adapter"
	"oversell/trial/process"
)

// Lock is a lock on trial: the program that offers it, and what its hello says.
type Lock struct {
	Command string // as the user typed it
	Hello   adapter.Hello
	Program string // oversell, whose command worker checks the contract; empty means this program

	line string // for the shell
}

// Greet starts a program without any server, for its hello only. So an error in its command or in its
// hello is found before a lab starts. One word is a line for the shell in the current folder, more are a
// program with its arguments.
func Greet(ctx context.Context, words ...string) (Lock, error) {
	dir, err := os.Getwd()
	if err != nil {
		return Lock{}, err
	}
	if len(words) == 0 || strings.TrimSpace(words[0]) == "" {
		return Lock{}, errors.New("name the adapter's command after --")
	}
	line := words[0]
	if len(words) > 1 {
		line = "exec " + process.Quoted(words...)
	}
	line = "cd " + process.Quoted(dir) + " && " + line
	lock := Lock{Command: process.Quoted(words...), line: line}
	program, err := lock.start(ctx, nil)
	if err != nil {
		return Lock{}, err
	}
	defer program.Close()
	lock.Hello = program.Hello()
	if err := lock.checkClaims(); err != nil {
		return Lock{}, err
	}
	return lock, nil
}

// start starts the program with these variables besides its own.
func (l Lock) start(ctx context.Context, servers []string) (*adapter.Adapter, error) {
	return adapter.Start(ctx, func() *exec.Cmd {
		cmd := adapter.Shell(l.line, "", append(Environment(), servers...))()
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that its children end with it
		return cmd
	}, nil)
}

// reaches returns an error if the lock cannot be acquired on a Redis with this topology. Its other servers are those
// of the lab at these addresses.
func (l Lock) reaches(ctx context.Context, topology rig.Topology, at rig.Addresses) (err error) {
	servers, err := rig.Start(ctx, rig.Config{RedisTopology: topology})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, servers.Close()) }()
	at.SingleRedis = servers.Addresses().SingleRedis
	program, err := l.start(ctx, at.ServeEnv())
	if err == nil {
		defer program.Close()
		err = program.Try(ctx)
	}
	if err != nil && ctx.Err() == nil {
		const format = "the lock could not be acquired on a Redis %s, where the program gets REDIS_URL=%s: %w\n" +
			"Let the program read such an address (docs/adapter.md has examples), or leave these hazards out"
		secret := regexp.MustCompile(`:[^:@/]*(@|$)`)
		err = load.InvalidPlan(fmt.Errorf(format, topology, secret.ReplaceAllString(at.SingleRedis, ":PASSWORD$1"), err))
	}
	return err
}

// checkClaims rejects a claim about a hazard that does not exist.
func (l Lock) checkClaims() error {
	claimed := slices.Clone(l.Hello.Protects)
	for _, b := range l.Hello.Breaks {
		claimed = append(claimed, b.Hazard)
	}
	if err := known(claimed); err != nil {
		return fmt.Errorf("the hello of the adapter: %w", err)
	}
	return nil
}

// Environment returns the variables of this process that the program of a lock gets, wherever it runs: all
// but those that configure a replica or name servers.
func Environment() []string {
	ours := strings.Fields("ADAPTER ADDR CONNS DRAIN ETCD_AUTH ETCD_CA ETCD_CERT ETCD_ENDPOINTS ETCD_KEY GOMAXPROCS LAB LAB_TOKEN LEASE NAMESPACE " +
		"MYSQL_CA MYSQL_CERT MYSQL_DSN MYSQL_KEY MYSQL_PUBLIC_KEY MYSQL_READS MYSQL_URL REDIS_URL " +
		"REDLOCK_URLS REPLICA TRACES_TO ZK_AUTH ZK_CA ZK_CERT ZK_KEY ZK_SERVERS ZK_SESSION ZK_TLS")
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(ours, strings.TrimSuffix(name, "_FILE")) || strings.HasPrefix(name, "OTEL_")
	})
}

// needsPostgres reports whether a lab for the lock needs a PostgreSQL, which other labs do not have.
func (l Lock) needsPostgres() bool { return slices.Contains(l.Hello.Backends, "postgres") }

// ContractLab changes the settings of a lab to those of the contract: only its servers.
func (l Lock) ContractLab(cfg *rig.Config) {
	cfg.Replicas, cfg.Nginx, cfg.Postgres = 0, false, l.needsPostgres()
}

// HazardLab changes the settings of a lab to those of experiments, with the lock's program beside
// each replica.
func (l Lock) HazardLab(cfg *rig.Config) {
	*cfg = player.Config(cfg.Binary, cfg.Token)
	cfg.ReplicaEnv = Environment()
	if !slices.Contains(l.Hello.Backends, "zookeeper") { // fewer servers start sooner
		cfg.Zookeeper = 1
	}
	if !slices.Contains(l.Hello.Backends, "etcd") {
		cfg.Etcd = 1
	}
	cfg.Postgres, cfg.ReplicaArgs = l.needsPostgres(), append(cfg.ReplicaArgs, "--adapter", l.line)
}
