package cli

import (
	"context"
	"errors"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
	"oversell/locks/redislock"
	"oversell/stock"
)

// TestRedisCauses checks what /readyz and the log say about a Redis, a Sentinel or a cluster that cannot be
// used, and that they do not show the password.
func TestRedisCauses(t *testing.T) {
	t.Parallel()
	const secret = "wr0ng-pa55-w0rd"
	sentinel := rigtest.Start(t, rig.Config{Redis: 1, RedisTopology: rig.RedisSentinel})
	cluster := rigtest.Start(t, rig.Config{Redis: 1, RedisTopology: rig.RedisCluster})
	_, server, _ := strings.Cut(sentinel.Addresses().Redis[0], "@")
	says := func(url, want string) {
		t.Helper()
		c, err := redislock.Open(url, 2)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if want == "" {
			if err := redislock.Ping(t.Context(), c); err != nil {
				t.Error(err)
			}
			return
		}
		why := ""
		for began := time.Now(); !strings.HasPrefix(why, want) && time.Since(began) < 30*time.Second; time.Sleep(20 * time.Millisecond) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			if err := explain("redis", redislock.Ping(ctx, c)); err != nil {
				why = err.Error()
			}
			cancel()
		}
		if !strings.HasPrefix(why, want) || strings.Contains(why, secret) {
			t.Errorf("it says %q, want %q", why, want)
		}
	}
	says("redis://:"+secret+"@"+server, "the server refused the user: correct the user or the password in REDIS_URL (")
	says("redis://"+strings.TrimSuffix(server, "/0"), "the server requires a password: add it to REDIS_URL (")
	says("redis://:"+secret+"@127.0.0.1:1", "nothing listens at the address: start the server, or correct REDIS_URL (")
	says("redis-sentinel://:"+secret+"@127.0.0.1:1,127.0.0.1:2/oversell", "no Sentinel answers: check that they run, the addresses in REDIS_URL, and the user in its parameter sentinel (")
	says(strings.Replace(sentinel.Addresses().SingleRedis, "/oversell?", "/another?", 1), "the Sentinels know no master of this name: correct the name at the end of REDIS_URL (")
	says(sentinel.Addresses().SingleRedis, "")
	says(cluster.Addresses().SingleRedis, "")

	var err error
	for _, name := range []string{"redis-node-1", "redis-node-2"} { // a majority of the masters, so no replica takes over
		s, missing := cluster.Server(name)
		s.Kill()
		err = errors.Join(err, missing)
	}
	if err != nil {
		t.Fatal(err)
	}
	says(cluster.Addresses().SingleRedis, "some masters of the cluster are missing: start them, or let their replicas take over (")
}

// ownRedis starts a Redis with all commands, which those of a lab do not have. It returns its host:port.
func ownRedis(t *testing.T) string {
	t.Helper()
	free, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	_ = free.Close()
	_, port, _ := net.SplitHostPort(addr)
	server := exec.CommandContext(t.Context(), "redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir())
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Wait() }) // ended by the test's context
	return addr
}

// TestRejectedWrites checks what /readyz says about a Redis that answers, but rejects what a sale sends.
func TestRejectedWrites(t *testing.T) {
	t.Parallel()
	server := ownRedis(t)
	url := "redis://" + server
	open := func(url string) redis.UniversalClient {
		c, err := redislock.Open(url, 2)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	c := open(url)
	for began := time.Now(); c.Ping(t.Context()).Err() != nil && time.Since(began) < time.Minute; {
		time.Sleep(20 * time.Millisecond)
	}
	for _, test := range []struct {
		set, undo []any
		url, want string
	}{
		{[]any{"CONFIG", "SET", "maxmemory", "1"}, []any{"CONFIG", "SET", "maxmemory", "0"}, url, "the server's memory is full"},
		{[]any{"CONFIG", "SET", "min-replicas-to-write", "1"}, []any{"CONFIG", "SET", "min-replicas-to-write", "0"}, url, "the server rejects writes, because too few of its replicas"},
		{[]any{"REPLICAOF", "127.0.0.1", "1"}, []any{"REPLICAOF", "NO", "ONE"}, url, "the server is a replica, which rejects writes: name its master in REDIS_URL"},
		{
			[]any{"ACL", "SETUSER", "app", "on", ">secret", "~*", "+@all", "resetchannels"},
			[]any{"ACL", "SETUSER", "app", "allchannels"},
			"redis://app:secret@" + server, "the user may not use the channels of the locks",
		},
	} {
		if err := c.Do(t.Context(), test.set...).Err(); err != nil {
			t.Fatal(err)
		}
		if err := explain("redis", redislock.Ping(t.Context(), open(test.url))); err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%v: %v, want %q", test.set, err, test.want)
		}
		if err := c.Do(t.Context(), test.undo...).Err(); err != nil {
			t.Fatal(err)
		}
		if err := redislock.Ping(t.Context(), open(test.url)); err != nil {
			t.Errorf("after %v: %v", test.undo, err)
		}
	}
}

// TestMySQLAdvice checks that the advice about a limit of MySQL names the setting of the server, and what else may help.
func TestMySQLAdvice(t *testing.T) {
	t.Parallel()
	for number, want := range map[uint16][]string{
		1040: {"max_connections", "CONNS"}, 1203: {"max_user_connections", "CONNS"}, 1226: {"ALTER USER", "CONNS"},
		1129: {"max_connect_errors"}, 1969: {"max_statement_time"}, 3024: {"max_execution_time"},
		1290: {"MYSQL_DSN", "read_only"}, 1792: {"MYSQL_DSN", "transaction_read_only"}, 1836: {"MYSQL_DSN", "innodb_read_only"},
		1206: {"innodb_buffer_pool_size"}, 1114: {"disk"},
	} {
		advice := advise("mysql", stock.NothingWritten(t.Context(), &mysql.MySQLError{Number: number}))
		for _, word := range want {
			if !strings.Contains(advice, word) {
				t.Errorf("%d: %q does not name %s", number, advice, word)
			}
		}
	}
}
