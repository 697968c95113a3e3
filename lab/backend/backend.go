// Package backend asks a server behind the locks about itself: how often it was asked, by
// anybody, since it was started, and whether it leads.
package backend

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver "mysql"
	"github.com/redis/go-redis/v9"
)

var commandStat = regexp.MustCompile(`cmdstat_(\S+?):calls=(\d+)`)

// RedisCommands are those that the Redis at url has carried out, those inside a script
// included. It leaves out what a lab asks, and what connections say of themselves.
func RedisCommands(ctx context.Context, url string) (sum int64, err error) {
	options, err := redis.ParseURL(url)
	if err != nil {
		return 0, fmt.Errorf("redis: %w", err)
	}
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	text, err := client.Info(ctx, "commandstats").Result()
	if err != nil {
		return 0, fmt.Errorf("redis at %s: %w", options.Addr, err) // not the URL: it has a password
	}
	for _, m := range commandStat.FindAllStringSubmatch(text, -1) {
		switch m[1] {
		case "info", "ping", "auth", "hello", "client|setinfo", "client|maint_notifications", "replconf":
		default:
			n, err := strconv.ParseInt(m[2], 10, 64)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", m[0], err)
			}
			sum += n
		}
	}
	return sum, nil
}

// MySQLQuestions are the statements that clients sent to the server of dsn.
func MySQLQuestions(ctx context.Context, dsn string) (n int64, err error) {
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		return 0, fmt.Errorf("mysql: %w", err)
	}
	defer func() { _ = db.Close() }()
	var variable string
	err = db.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Questions'").Scan(&variable, &n)
	if err != nil {
		return 0, fmt.Errorf("mysql: %w", err)
	}
	return n, nil
}

var packets = regexp.MustCompile(`zk_packets_received\s+(\d+)`)

// ZooKeeperPackets are what the ZooKeeper at addr has received from its clients,
// heartbeats included.
func ZooKeeperPackets(ctx context.Context, addr string) (int64, error) {
	text, err := mntr(ctx, addr)
	if err != nil {
		return 0, err
	}
	found := packets.FindSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("%s says %s", addr, text)
	}
	return strconv.ParseInt(string(found[1]), 10, 64)
}

// ZooKeeperLeads reports whether the ZooKeeper at addr is the leader of its ensemble.
func ZooKeeperLeads(ctx context.Context, addr string) (bool, error) {
	text, err := mntr(ctx, addr)
	return bytes.Contains(text, []byte("zk_server_state\tleader")), err
}

// mntr is what a ZooKeeper tells of itself.
func mntr(ctx context.Context, addr string) ([]byte, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })()
	if _, err := io.WriteString(conn, "mntr"); err != nil {
		return nil, fmt.Errorf("%s: %w", addr, err)
	}
	text, err := io.ReadAll(conn)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", addr, err)
	}
	return text, nil
}

var messages = regexp.MustCompile(`(?m)^grpc_server_msg_received_total{.*} (\S+)$`)

// EtcdMessages are what the member at addr has received from its clients, those in streams
// included.
func EtcdMessages(ctx context.Context, addr string) (sum int64, err error) {
	text, err := askEtcd(ctx, http.MethodGet, addr, "/metrics")
	for _, m := range messages.FindAllSubmatch(text, -1) {
		n, err := strconv.ParseFloat(string(m[1]), 64) // large ones have an exponent
		if err != nil {
			return 0, fmt.Errorf("%s: %w", addr, err)
		}
		sum += int64(n)
	}
	return sum, err
}

// EtcdLeads reports whether the member at addr is the leader of its cluster.
func EtcdLeads(ctx context.Context, addr string) (bool, error) {
	text, err := askEtcd(ctx, http.MethodPost, addr, "/v3/maintenance/status")
	if err != nil {
		return false, err
	}
	var status struct {
		Leader string
		Header struct {
			Member string `json:"member_id"`
		}
	}
	if err := json.Unmarshal(text, &status); err != nil {
		return false, fmt.Errorf("%s says %s: %w", addr, text, err)
	}
	return status.Leader == status.Header.Member, nil
}

// askEtcd asks a member by HTTP, which it speaks as well.
func askEtcd(ctx context.Context, method, addr, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+addr+path, strings.NewReader("{}"))
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", addr, err)
	}
	return text, nil
}
