package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"oversell/lab/rig"
	"oversell/locks/redislock"
)

// operations count what each backend of the rig was asked so far, by anybody.
func operations(t *testing.T, r *rig.Rig, l *lesson) map[string]func(context.Context) (int64, error) {
	t.Helper()
	var masters []redis.UniversalClient
	for _, url := range r.Addresses().Redis {
		master, err := redislock.Open(url, 1)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = master.Close() })
		masters = append(masters, master)
	}
	return map[string]func(context.Context) (int64, error){
		"redis":     func(ctx context.Context) (int64, error) { return commands(ctx, masters[:1]) },
		"redlock":   func(ctx context.Context) (int64, error) { return commands(ctx, masters) },
		"zookeeper": func(ctx context.Context) (int64, error) { return packets(ctx, r.Addresses().Zookeeper[0]) },
		"etcd":      func(ctx context.Context) (int64, error) { return messages(ctx, r.Addresses().Etcd[0]) },
		"mysql": func(ctx context.Context) (n int64, err error) {
			var name string
			err = l.db.WithContext(ctx).Raw("SHOW GLOBAL STATUS LIKE 'Questions'").Row().Scan(&name, &n)
			return n, err
		},
	}
}

func commands(ctx context.Context, masters []redis.UniversalClient) (sum int64, err error) {
	for _, master := range masters {
		text, err := master.Info(ctx, "stats").Result()
		if err != nil {
			return 0, err
		}
		n, err := figure(text, `total_commands_processed:(\d+)`)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// packets asks ZooKeeper's mntr.
func packets(ctx context.Context, addr string) (int64, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "mntr"); err != nil {
		return 0, err
	}
	text, err := io.ReadAll(conn)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	return figure(string(text), `zk_packets_received\s+(\d+)`)
}

// messages are what etcd has received from its clients, those in streams included.
func messages(ctx context.Context, addr string) (sum int64, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err
	}
	for _, m := range regexp.MustCompile(`(?m)^grpc_server_msg_received_total{.*} (\S+)$`).FindAllStringSubmatch(string(text), -1) {
		n, err := strconv.ParseFloat(m[1], 64) // large ones have an exponent
		if err != nil {
			return 0, err
		}
		sum += int64(n)
	}
	return sum, nil
}

func figure(text, pattern string) (int64, error) {
	found := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("no %s in %s", pattern, strings.TrimSpace(text))
	}
	return strconv.ParseInt(found[1], 10, 64)
}
