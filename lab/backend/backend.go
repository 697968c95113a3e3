// Package backend reads the statistics of the locks' servers, such as the number of requests. It also
// deletes their data, as an operator does.
package backend

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"oversell/api"
)

// These patterns match a line of a server's statistics: the name of a counter and its value.
var (
	commandStat     = regexp.MustCompile(`cmdstat_(\S+?):calls=(\d+)`)
	readsProcessed  = regexp.MustCompile(`(total_reads_processed):(\d+)`)
	packetsReceived = regexp.MustCompile(`(zk_packets_received)\s+(\d+)`)
	messageReceived = regexp.MustCompile(`(?m)^(grpc_server_msg_received_total){.*} (\S+)$`)
)

func sum(text string, counter *regexp.Regexp, except ...string) (total int64, err error) {
	for _, m := range counter.FindAllStringSubmatch(text, -1) {
		if slices.Contains(except, m[1]) {
			continue
		}
		n, err := strconv.ParseFloat(m[2], 64) // etcd writes large numbers with an exponent
		if err != nil {
			return 0, fmt.Errorf("%s: %w", m[0], err)
		}
		total += int64(n)
	}
	return total, nil
}

// RedisCommands returns how many commands the Redis at url has executed, including those inside
// scripts. It excludes its own commands and the commands that set up a connection.
func RedisCommands(ctx context.Context, url string) (int64, error) {
	text, err := redisInfo(ctx, url, "commandstats")
	if err != nil {
		return 0, err
	}
	return sum(text, commandStat, "info", "ping", "auth", "hello", "client|setinfo", "client|maint_notifications", "replconf")
}

// RedisReads returns how often the Redis at url has read from its clients: once for a command by itself, a pipeline or
// a script.
func RedisReads(ctx context.Context, url string) (int64, error) {
	text, err := redisInfo(ctx, url, "stats")
	if err != nil {
		return 0, err
	}
	return sum(text, readsProcessed)
}

// MySQLQuestions returns how many statements clients have sent to the server with this dsn.
func MySQLQuestions(ctx context.Context, dsn string) (n int64, err error) {
	err = WithMySQL(dsn, func(db *sql.DB) error {
		var name string
		return db.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Questions'").Scan(&name, &n)
	})
	return n, err
}

// ZooKeeperPackets returns how many packets the server received from clients, including heartbeats.
func ZooKeeperPackets(ctx context.Context, addr string) (int64, error) {
	return reported(ctx, addr, "mntr", packetsReceived)
}

// ZooKeeperLeads reports whether the ZooKeeper at addr is the leader of its ensemble.
func ZooKeeperLeads(ctx context.Context, addr string) (bool, error) {
	text, err := mntr(ctx, addr)
	return strings.Contains(text, "zk_server_state\tleader"), err
}

func mntr(ctx context.Context, addr string) (string, error) { return Exchange(ctx, addr, "mntr", "") }

// EtcdMessages returns how many messages the server received from clients, including streams.
func EtcdMessages(ctx context.Context, addr string) (int64, error) {
	return reported(ctx, addr, "GET /metrics HTTP/1.0\r\n\r\n", messageReceived)
}

// reported returns a counter of the statistics that the server at addr sends for a request, before it closes the
// connection.
func reported(ctx context.Context, addr, request string, counter *regexp.Regexp) (int64, error) {
	text, err := Exchange(ctx, addr, request, "")
	if err == nil && !counter.MatchString(text) {
		err = fmt.Errorf("the statistics of %s lack a counter: %.200s", addr, text)
	}
	if err != nil {
		return 0, err
	}
	return sum(text, counter)
}

// EtcdLeads reports whether the member at addr is the leader of its cluster.
func EtcdLeads(ctx context.Context, addr string) (bool, error) {
	var status struct {
		Leader string
		Header struct {
			Member string `json:"member_id"`
		}
	}
	err := askEtcd(ctx, http.MethodPost, addr, "/v3/maintenance/status", "{}", &status)
	return err == nil && status.Leader == status.Header.Member, err
}

// askEtcd sends JSON, and decodes the answer. No second request uses the connection.
func askEtcd(ctx context.Context, method, addr, path, body string, answer any) error {
	once := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return api.Client{Base: "http://" + addr, HTTP: once}.Call(ctx, method, path, json.RawMessage(body), answer)
}
