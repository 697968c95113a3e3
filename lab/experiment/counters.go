package experiment

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	_ "github.com/go-sql-driver/mysql" // the driver "mysql"
	"github.com/redis/go-redis/v9"
)

// questions is how many the backends have been asked so far, as they count themselves,
// without those that the counting takes.
func (c *Class) questions(ctx context.Context) (int64, error) {
	sum, err := c.counted(ctx)
	c.looks++
	return sum - c.looks*c.ownCost, err
}

// learnOwnCost finds out what one look adds to the counts, while nobody else asks.
func (c *Class) learnOwnCost(ctx context.Context) error {
	first, err := c.counted(ctx)
	for range 5 {
		var next int64
		if next, err = c.counted(ctx); err != nil {
			return err
		}
		// A heartbeat may have come in between: the least is the truth.
		if cost := next - first; c.ownCost == 0 || cost < c.ownCost {
			c.ownCost = cost
		}
		first = next
	}
	return err
}

func (c *Class) counted(ctx context.Context) (sum int64, err error) {
	addresses := c.Rig.Addresses()
	for _, node := range addresses.Redis {
		n, err := redisCommands(ctx, node)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	for _, node := range addresses.Zookeeper {
		n, err := zooKeeperPackets(ctx, node)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	for _, member := range addresses.Etcd {
		n, err := etcdMessages(ctx, member)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	n, err := mysqlQuestions(ctx, addresses.MySQL)
	return sum + n, err
}

var commandStat = regexp.MustCompile(`cmdstat_(\S+?):calls=(\d+)`)

// redisCommands leaves out what a lab asks, and what connections say of themselves.
func redisCommands(ctx context.Context, url string) (sum int64, err error) {
	options, err := redis.ParseURL(url)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", url, err)
	}
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	text, err := client.Info(ctx, "commandstats").Result()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", url, err)
	}
	for _, m := range commandStat.FindAllStringSubmatch(text, -1) {
		switch m[1] {
		case "info", "ping", "hello", "client|setinfo", "client|maint_notifications", "replconf":
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

var packets = regexp.MustCompile(`zk_packets_received\s+(\d+)`)

func zooKeeperPackets(ctx context.Context, addr string) (int64, error) {
	text, err := mntr(ctx, addr)
	if err != nil {
		return 0, err
	}
	found := packets.FindSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("%s says %s", addr, text)
	}
	return strconv.ParseInt(string(found[1]), 10, 64) //nolint:wrapcheck // digits
}

// mntr is what a ZooKeeper tells of itself.
func mntr(ctx context.Context, addr string) ([]byte, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err //nolint:wrapcheck // names the address
	}
	defer func() { _ = conn.Close() }()
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

// etcdMessages are what a member has received from its clients, those in streams included.
func etcdMessages(ctx context.Context, addr string) (sum int64, err error) {
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

// askEtcd asks a member by HTTP, which it speaks as well.
func askEtcd(ctx context.Context, method, addr, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+addr+path, strings.NewReader("{}"))
	if err != nil {
		return nil, err //nolint:wrapcheck // names the URL
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err //nolint:wrapcheck // names the URL
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", addr, err)
	}
	return text, nil
}

// leaders are the ZooKeeper and the etcd that the others follow.
func (c *Class) leaders(ctx context.Context) ([]string, error) {
	zookeeper, err := c.zookeeperLeader(ctx)
	if err != nil {
		return nil, err
	}
	for i, addr := range c.Rig.Addresses().Etcd {
		text, err := askEtcd(ctx, http.MethodPost, addr, "/v3/maintenance/status")
		if err != nil {
			return nil, err
		}
		var status struct {
			Leader string
			Header struct {
				Member string `json:"member_id"`
			}
		}
		if err := json.Unmarshal(text, &status); err != nil {
			return nil, fmt.Errorf("%s says %s: %w", addr, text, err)
		}
		if status.Leader == status.Header.Member {
			return []string{zookeeper, fmt.Sprintf("etcd-%d", i+1)}, nil
		}
	}
	return nil, errors.New("no etcd leads")
}

func (c *Class) zookeeperLeader(ctx context.Context) (string, error) {
	for i, addr := range c.Rig.Addresses().Zookeeper {
		text, err := mntr(ctx, addr)
		if err != nil {
			return "", err
		}
		if bytes.Contains(text, []byte("zk_server_state\tleader")) {
			return fmt.Sprintf("zookeeper-%d", i+1), nil
		}
	}
	return "", errors.New("no ZooKeeper leads")
}

func mysqlQuestions(ctx context.Context, dsn string) (n int64, err error) {
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
