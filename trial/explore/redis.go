package explore

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/proto"
	"github.com/redis/go-redis/v9"

	"oversell/locks/redislock"
	"oversell/stock"
)

// server is one Redis: miniredis, an implementation in Go, with all its data in memory.
type server struct {
	name    string
	mini    *miniredis.Miniredis
	scripts map[string]bool // that the server has stored, by SHA-1
	files   map[string]string
}

// startRedis starts a server whose connections come from dial. It must be called outside the bubble:
// in the bubble, the goroutine that listens would never be durably blocked.
func startRedis() (*miniredis.Miniredis, error) {
	m := miniredis.NewMiniRedis()
	if err := m.Start(); err != nil {
		return nil, fmt.Errorf("start miniredis: %w", err)
	}
	m.Server().Close()
	return m, nil
}

// openRedis returns a client's connections with a server.
func (w *world) openRedis(client int, s *server) (redis.UniversalClient, error) {
	// The address is a literal, because a look-up of a name would leave the bubble.
	return redislock.OpenWith("redis://127.0.0.1:1", 10, func(context.Context, string, string) (net.Conn, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.dead(client) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errCrashed}
		}
		w.touch(s.name+" connections", false)
		l := &link{news: newNews(), w: w, client: client, peer: s}
		w.links = append(w.links, l)
		s.mini.Server().ServeConn(serverEnd{link: l})
		return &clientEnd{link: l}, nil
	})
}

// parse splits what a client sends into commands.
func parse(b []byte) (commands [][]string, err error) {
	for len(b) > 0 {
		var command []string
		text, err := proto.Read(bufio.NewReader(bytes.NewReader(b)))
		if err == nil {
			command, err = proto.ReadStrings(text)
		}
		if err != nil {
			return nil, fmt.Errorf("not a command of Redis: %w", err)
		}
		commands, b = append(commands, command), b[len(text):]
	}
	return commands, nil
}

// reads reports whether a command changes nothing.
func reads(command string) bool {
	return slices.Contains([]string{"get", "exists", "hget", "hexists", "ttl", "pttl", "watch", "unwatch"}, command)
}

func (s *server) message(l *link, b []byte) (m message, waits bool, err error) {
	commands, err := parse(b)
	if err != nil {
		return m, false, err
	}
	l.subscribed = l.subscribed || strings.EqualFold(commands[0][0], "subscribe")
	name, writes, waits := s.describe(commands)
	return message{name: name, server: s.name, writes: writes, keys: keysOf(commands), deliver: func() {
		s.remember(commands)
		l.forward(b)
	}}, waits, nil
}

// describe names what a client sends in one piece. waits is false for what is of no interest: the
// beginning of a connection, a PING, an UNSUBSCRIBE, since the notifier ignores further messages, and a
// script that the server does not know and rejects.
func (s *server) describe(commands [][]string) (name string, writes, waits bool) {
	var names []string
	for _, c := range commands {
		switch command := strings.ToLower(c[0]); command {
		case "hello", "client", "auth", "select", "ping", "unsubscribe":
			continue
		case "evalsha":
			if !s.scripts[c[1]] {
				continue
			}
			names, writes = append(names, s.file(c[1])+key(c, 3)), true
		case "eval":
			names, writes = append(names, s.file(redis.NewScript(c[1]).Hash())+key(c, 3)), true
		default:
			names = append(names, strings.ToUpper(command)+key(c, 1))
			writes = writes || !reads(command)
		}
	}
	return strings.Join(names, ", "), writes, len(names) > 0
}

// keysOf returns the keys that commands read or write, or nil if they may access others. The scripts get
// all their keys as arguments. The order of SUBSCRIBE and of a script that publishes has an effect, too,
// so all that is not listed here accesses everything.
func keysOf(commands [][]string) (keys []string) {
	for _, c := range commands {
		switch strings.ToLower(c[0]) {
		case "hello", "client", "auth", "select", "ping":
		case "evalsha", "eval":
			n, err := strconv.Atoi(c[2])
			if err != nil || n == 0 {
				return nil
			}
			keys = append(keys, c[3:3+n]...)
		case "set", "get", "setnx", "getset", "expire", "pexpire", "ttl", "pttl", "exists", "incr", "hget", "hexists", "hset":
			keys = append(keys, c[1])
		case "del":
			keys = append(keys, c[1:]...)
		default:
			return nil
		}
	}
	return keys
}

// watched is a Redis before a message is delivered.
type watched struct {
	*server
	keys   []string // that the message names
	before map[string]string
}

// content returns the value and the rest of the life of each key.
func (s *server) content() map[string]string {
	content := map[string]string{}
	for _, block := range strings.Split("\n"+s.mini.Dump(), "\n- ")[1:] {
		key, value, _ := strings.Cut(block, "\n")
		content[key] = fmt.Sprint(strings.TrimSpace(value), s.mini.TTL(key))
	}
	return content
}

// accesses returns what the message has read, and what it has changed. It changes nothing if a lock is
// held by another client, for example.
func (w *watched) accesses() (all []access, err error) {
	after := w.content()
	var changed []string
	for _, keys := range []map[string]string{w.before, after} {
		for key := range keys {
			if w.before[key] != after[key] && !slices.Contains(changed, key) {
				changed = append(changed, key)
			}
		}
	}
	for _, key := range changed {
		if !slices.Contains(w.keys, key) {
			return nil, fmt.Errorf("a command with the keys %v has changed the key %q", w.keys, key)
		}
	}
	all = []access{{to: w.name, keys: w.keys}}
	if changed != nil {
		all = append(all, access{to: w.name, writes: true, keys: changed})
	}
	return all, nil
}

// key returns a space and the key of a command, if it has one.
func key(command []string, at int) string {
	if len(command) <= at {
		return ""
	}
	return " " + stock.WithoutTokens(command[at])
}

// remember notes that the server stores the scripts of commands.
func (s *server) remember(commands [][]string) {
	for _, c := range commands {
		if strings.EqualFold(c[0], "eval") {
			s.scripts[redis.NewScript(c[1]).Hash()] = true
		}
	}
}

func (s *server) file(sha string) string {
	if name, ok := s.files[sha]; ok {
		return name
	}
	return "a script"
}

// fastForward lets keys expire, since miniredis has no clock of its own.
func (s *server) fastForward(d time.Duration) {
	s.mini.FastForward(d)
	s.mini.SetTime(time.Now())
}
