package cli

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"oversell/lab/rig"
)

const labUsage = "use the lab whose addresses are in `FILE` (of oversell lab --json), or the newest one if FILE is running"

// runningLab is the value of --lab for the newest lab that runs.
const runningLab = "running"

func labAddresses(lab, program string) (rig.Addresses, error) {
	read := func() (rig.Addresses, error) { return rig.ReadAddresses(lab) }
	if lab == runningLab {
		read = rig.Running
	}
	addrs, err := read()
	switch {
	case errors.Is(err, rig.ErrNoLab):
		err = fmt.Errorf("%w: start one in another terminal with %s lab (or make lab), or name the file of its addresses with --lab FILE", rig.ErrNoLab, program)
	case err == nil && (addrs.MySQL == "" || len(addrs.Redis) == 0 || len(addrs.Zookeeper) == 0 || len(addrs.Etcd) == 0):
		err = errors.New("the lab has no MySQL, Redis, ZooKeeper or etcd")
	}
	return addrs, err
}

// client is the command line of a server's own client. Passwords are in env, because all users can
// read a command line.
type client struct {
	programs []string // the first that is installed is used
	args     []string
	env      []string // NAME=value
	install  string   // how to get it
}

// String returns the command line for a shell.
func (c client) String() string {
	return strings.Join(slices.Concat(c.env, c.programs[:1], c.args), " ")
}

// clientCommands returns the commands that open a client on a server of the lab.
func clientCommands() []*cobra.Command {
	return []*cobra.Command{
		clientCommand("mysql", "MySQL", mysqlClient),
		clientCommand("redis-cli", "the first Redis", redisClient),
		clientCommand("zkcli", "ZooKeeper", zookeeperClient),
		clientCommand("etcdctl", "etcd", etcdClient),
	}
}

func clientCommand(name, server string, find func(rig.Addresses) (client, error)) *cobra.Command {
	return &cobra.Command{
		Use:   name + " [--lab FILE] [ARGUMENT...]",
		Short: "Open the client of " + server + " in the running lab",
		Long: "Runs the machine's client on " + server + ` of the newest lab that this user runs with
"oversell lab". All arguments go to the client, except --help or --lab FILE in front. With
--lab, the addresses come from FILE, which "oversell lab --json FILE" writes.`,
		DisableFlagParsing: true, // -e, -h and others are the client's
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && args[0] == "--help" {
				return cmd.Help()
			}
			lab, args, err := clientFlags(args)
			if err != nil {
				return &exit{2, err}
			}
			addrs, err := labAddresses(lab, cmd.Root().CommandPath())
			if err == nil {
				err = openClient(addrs, find, args)
			}
			return err
		},
	}
}

// clientFlags takes this program's flag --lab from the front of args.
func clientFlags(args []string) (lab string, rest []string, err error) {
	switch {
	case len(args) == 0:
		return runningLab, nil, nil
	case args[0] == "--lab" && len(args) == 1:
		return "", nil, errors.New("--lab: name the file that the command lab has written with --json FILE")
	case args[0] == "--lab":
		return args[1], args[2:], nil
	case strings.HasPrefix(args[0], "--lab="):
		return strings.TrimPrefix(args[0], "--lab="), args[1:], nil
	}
	return runningLab, args, nil
}

// openClient replaces this program with the client, which so has the terminal and its signals.
func openClient(addrs rig.Addresses, find func(rig.Addresses) (client, error), args []string) error {
	c, err := find(addrs)
	if err != nil {
		return err
	}
	for _, program := range c.programs {
		path, err := exec.LookPath(program)
		if err != nil {
			continue
		}
		if err := syscall.Exec(path, slices.Concat([]string{program}, c.args, args), append(os.Environ(), c.env...)); err != nil { //nolint:gosec // the user's own
			return fmt.Errorf("start %s: %w", path, err)
		}
	}
	return fmt.Errorf("%s is not installed (%s). Once it is, this is the command:\n  %s", c.programs[0], c.install, c)
}

func mysqlClient(addrs rig.Addresses) (client, error) {
	cfg, err := mysql.ParseDSN(addrs.MySQL)
	if err != nil {
		return client{}, errors.New("the lab's address of MySQL is wrong") // err contains the password
	}
	host, port, err := net.SplitHostPort(cfg.Addr)
	return client{
		programs: []string{"mysql", "mariadb"},
		args:     []string{"--host=" + host, "--port=" + port, "--user=" + cfg.User, "--database=" + cfg.DBName},
		env:      []string{"MYSQL_PWD=" + cfg.Passwd},
		install:  "Debian: apt install mariadb-client; macOS: brew install mysql-client",
	}, err
}

func redisClient(addrs rig.Addresses) (client, error) {
	options, err := redis.ParseURL(addrs.Redis[0])
	if err != nil {
		return client{}, errors.New("the lab's address of Redis is wrong") // err contains the password
	}
	host, port, err := net.SplitHostPort(options.Addr)
	return client{
		programs: []string{"redis-cli", "valkey-cli"},
		args:     []string{"-h", host, "-p", port},
		env:      []string{"REDISCLI_AUTH=" + options.Password},
		install:  "Debian: apt install redis-tools; macOS: brew install redis",
	}, err
}

func zookeeperClient(addrs rig.Addresses) (client, error) {
	line, err := rig.ZookeeperClient()
	if err != nil {
		line = []string{"zkCli.sh"} // for the message that it is not installed
	}
	c := client{
		programs: line[:1],
		args:     append(line[1:], "-server", strings.Join(addrs.Zookeeper, ",")),
		install:  "Debian: apt install zookeeper; macOS: brew install zookeeper",
	}
	login := "-Djava.security.auth.login.config=" + addrs.JAAS
	switch {
	case addrs.JAAS == "":
	case filepath.Base(line[0]) == "java":
		c.args = slices.Insert(c.args, 0, login)
	default: // the script zkCli
		c.env = []string{"CLIENT_JVMFLAGS=" + login}
	}
	return c, nil
}

func etcdClient(addrs rig.Addresses) (client, error) {
	args := []string{"--endpoints=" + strings.Join(addrs.Etcd, ",")}
	if addrs.CA != "" {
		args = append(args, "--cacert="+addrs.CA)
	}
	c := client{
		programs: []string{"etcdctl"}, args: args,
		install: "Debian: apt install etcd-client; macOS: brew install etcd",
	}
	if addrs.Login != "" {
		c.env = []string{"ETCDCTL_USER=" + addrs.Login}
	}
	return c, nil
}
