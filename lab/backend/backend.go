// Package backend reads the statistics of the locks' servers, such as the number of requests. It also
// deletes their data, as an operator does.
package backend

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
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
	text, err := mntr(ctx, addr)
	if err == nil && !packetsReceived.MatchString(text) {
		err = fmt.Errorf("%s: mntr does not report the packets: %s", addr, text)
	}
	if err != nil {
		return 0, err
	}
	return sum(text, packetsReceived)
}

// ZooKeeperLeads reports whether the ZooKeeper at addr is the leader of its ensemble.
func ZooKeeperLeads(ctx context.Context, addr string) (bool, error) {
	text, err := mntr(ctx, addr)
	return strings.Contains(text, "zk_server_state\tleader"), err
}

func mntr(ctx context.Context, addr string) (string, error) { return Exchange(ctx, addr, "mntr", "") }

// EtcdMessages returns how many messages the server received from clients, including streams.
func EtcdMessages(ctx context.Context, addr string) (int64, error) {
	text, err := requestEtcd(ctx, http.MethodGet, addr, "/metrics", "")
	if err != nil {
		return 0, err
	}
	return sum(string(text), messageReceived)
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

// askEtcd sends a request and decodes the answer, which is JSON.
func askEtcd(ctx context.Context, method, addr, path, body string, answer any) error {
	text, err := requestEtcd(ctx, method, addr, path, body)
	if err == nil {
		err = json.Unmarshal(text, answer)
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %s", path, err, text)
	}
	return nil
}

func requestEtcd(ctx context.Context, method, addr, path, body string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+addr+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Close = true // no second request uses this client
	res, err := api.Direct().Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", res.Status, text)
	}
	if err != nil {
		return nil, fmt.Errorf("etcd at %s: %w", addr, err)
	}
	return text, nil
}
