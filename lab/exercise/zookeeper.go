package exercise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/mattn/go-shellwords"
	"github.com/spf13/pflag"

	"oversell/lab/backend"
	"oversell/lab/rig"
)

// sessionTimeout is how long the nodes of a dead client stay.
const sessionTimeout = 4 * time.Second

type zkSession struct {
	conn  *zk.Conn
	fired chan string

	changing sync.Mutex
	dead     bool
	tcp      net.Conn // the connection in use
}

func openZookeeper(at rig.Addresses) (session, error) {
	if len(at.Zookeeper) == 0 {
		return nil, errors.New("the lab has no ZooKeeper")
	}
	s := &zkSession{fired: make(chan string, 16)}
	conn, _, err := zk.Connect(at.Zookeeper, sessionTimeout, zk.WithDialer(s.dial), zk.WithLogger(backend.Silent{}))
	if err == nil && at.Login != "" {
		err = conn.AddAuth("digest", []byte(at.Login))
	}
	if err != nil {
		return nil, fmt.Errorf("zookeeper: %w", err)
	}
	s.conn = conn
	return s, nil
}

// dial keeps the connection, for end.
func (s *zkSession) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	if s.dead {
		return nil, io.ErrClosedPipe
	}
	tcp, err := net.DialTimeout(network, address, timeout) //nolint:noctx // the driver has no context
	s.tcp = tcp
	return tcp, err
}

// zkOptions are the options of zkCli that the exercises use.
type zkOptions struct {
	sequence, ephemeral, container, stat, watch bool
	ttl                                         int64 // ms
	version                                     int32 // -1 means any
}

func (s *zkSession) send(_ context.Context, statement string) reply {
	words, err := shellwords.Parse(statement)
	if err != nil || len(words) == 0 {
		return reply{fmt.Sprintf("cannot read the command: %v", err), true}
	}
	var o zkOptions
	set := pflag.NewFlagSet(words[0], pflag.ContinueOnError)
	set.BoolVarP(&o.ephemeral, "ephemeral", "e", false, "")
	set.BoolVarP(&o.container, "container", "c", false, "")
	set.BoolVarP(&o.watch, "watch", "w", false, "")
	set.Int64VarP(&o.ttl, "ttl", "t", 0, "")
	set.Int32VarP(&o.version, "version", "v", -1, "")
	set.BoolVarP(&o.sequence, "sequence", "s", false, "")
	if err := set.Parse(words[1:]); err != nil || set.NArg() == 0 {
		return reply{fmt.Sprintf("cannot read the command: %v", err), true}
	}
	o.stat = o.sequence // -s is another option for each command
	node, data := set.Arg(0), []byte(set.Arg(1))
	text, err := s.run(words[0], node, data, o)
	if err != nil {
		return reply{zkError(err, node), true}
	}
	return reply{text, false}
}

func (s *zkSession) run(command, node string, data []byte, o zkOptions) (string, error) {
	switch command {
	case "create":
		return s.create(node, data, o)
	case "get":
		data, stat, err := watched(s, o.watch, node, s.conn.Get, s.conn.GetW)
		if err != nil || !o.stat {
			return string(data), err
		}
		return string(data) + "\n" + statText(stat), nil
	case "stat":
		exists, stat, err := watched(s, o.watch, node, s.conn.Exists, s.conn.ExistsW)
		if err == nil && !exists {
			err = zk.ErrNoNode
		}
		if err != nil {
			return "", err
		}
		return statText(stat), nil
	case "ls":
		children, _, err := watched(s, o.watch, node, s.conn.Children, s.conn.ChildrenW)
		slices.Sort(children)
		return "[" + strings.Join(children, ", ") + "]", err
	case "set":
		_, err := s.conn.Set(node, data, o.version)
		return "", err
	case "delete":
		return "", s.conn.Delete(node, o.version)
	case "deleteall":
		return "", s.deleteAll(node)
	default:
		return "", fmt.Errorf("there is no command %s", command)
	}
}

func (s *zkSession) create(node string, data []byte, o zkOptions) (created string, err error) {
	acl := zk.WorldACL(zk.PermAll)
	flags := int32(0)
	if o.ephemeral {
		flags |= zk.FlagEphemeral
	}
	if o.sequence {
		flags |= zk.FlagSequence
	}
	switch {
	case o.container:
		created, err = s.conn.CreateContainer(node, data, zk.FlagContainer, acl)
	case o.ttl > 0:
		created, err = s.conn.CreateTTL(node, data, zk.FlagTTL, acl, time.Duration(o.ttl)*time.Millisecond)
	default:
		created, err = s.conn.Create(node, data, flags, acl)
	}
	return "Created " + created, err
}

// deleteAll deletes a node and all below it. A missing node is no error.
func (s *zkSession) deleteAll(node string) error {
	for {
		children, _, err := s.conn.Children(node)
		for _, child := range children {
			err = errors.Join(err, s.deleteAll(path.Join(node, child)))
		}
		if err == nil {
			err = s.conn.Delete(node, -1)
		}
		switch {
		case errors.Is(err, zk.ErrNoNode):
			return nil
		case !errors.Is(err, zk.ErrNotEmpty):
			return err
		}
	}
}

// watched reads a node, with or without a watch. A watch that fires becomes an event.
func watched[T any](s *zkSession, watch bool, node string, read func(string) (T, *zk.Stat, error), readW func(string) (T, *zk.Stat, <-chan zk.Event, error)) (T, *zk.Stat, error) {
	if !watch {
		return read(node)
	}
	value, stat, changed, err := readW(node)
	if err == nil {
		go func() {
			if event := <-changed; event.Err == nil && event.Path != "" {
				s.fired <- fmt.Sprintf("WatchedEvent state:%s type:%s path:%s", strings.TrimPrefix(event.State.String(), "State"), strings.TrimPrefix(event.Type.String(), "Event"), event.Path)
			}
		}()
	}
	return value, stat, err
}

// statText has those lines of zkCli's stat that are the same in each run, but for the owner.
func statText(stat *zk.Stat) string {
	return fmt.Sprintf("cversion = %d\ndataVersion = %d\nephemeralOwner = 0x%x\ndataLength = %d\nnumChildren = %d",
		stat.Cversion, stat.Version, uint64(stat.EphemeralOwner), stat.DataLength, stat.NumChildren) //nolint:gosec // printed as bits
}

// zkError returns an error in the words of zkCli.
func zkError(err error, node string) string {
	for known, text := range map[error]string{
		zk.ErrNoNode:                  "Node does not exist: ",
		zk.ErrNodeExists:              "Node already exists: ",
		zk.ErrNotEmpty:                "Node not empty: ",
		zk.ErrBadVersion:              "version No is not valid : ",
		zk.ErrNoChildrenForEphemerals: "Ephemerals cannot have children: ",
	} {
		if errors.Is(err, known) {
			return text + node
		}
	}
	return err.Error()
}

func (s *zkSession) events() <-chan string { return s.fired }

func (s *zkSession) end(crash bool) {
	if !crash {
		s.conn.Close()
		return
	}
	s.changing.Lock()
	s.dead = true
	if s.tcp != nil {
		_ = s.tcp.Close()
	}
	s.changing.Unlock()
	go s.conn.Close() // it takes a second, because the server cannot be reached any more
}
