package rig_test

import (
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/redis/go-redis/v9"

	"oversell/lab/backend"
)

func mysqlWrite(t *testing.T, dsn string) {
	t.Helper()
	must(t, backend.ExecuteMySQL(t.Context(), dsn, "CREATE TABLE IF NOT EXISTS kept (name VARCHAR(20) PRIMARY KEY)"))
	must(t, backend.ExecuteMySQL(t.Context(), dsn, "REPLACE INTO kept VALUES ('商品')"))
}

func mysqlKept(t *testing.T, dsn string) bool {
	t.Helper()
	n, err := backend.MySQLValue(t.Context(), dsn, "SELECT COUNT(*) FROM kept WHERE name = '商品'")
	must(t, err)
	return n == "1"
}

func redisWrite(t *testing.T, url string) {
	t.Helper()
	withRedis(t, url, func(c *redis.Client) error { return c.Set(t.Context(), "kept", 1, 0).Err() })
}

func redisKept(t *testing.T, url string) (kept bool) {
	t.Helper()
	withRedis(t, url, func(c *redis.Client) error {
		n, err := c.Exists(t.Context(), "kept").Result()
		kept = n > 0
		return err
	})
	return kept
}

func withRedis(t *testing.T, url string, use func(*redis.Client) error) {
	t.Helper()
	options, err := redis.ParseURL(url)
	must(t, err)
	client := redis.NewClient(options)
	must(t, use(client))
	must(t, client.Close())
}

func zkWrite(t *testing.T, servers []string) {
	t.Helper()
	withZookeeper(t, servers, func(c *zk.Conn) error {
		_, err := c.Create("/kept", nil, 0, zk.WorldACL(zk.PermAll))
		if errors.Is(err, zk.ErrNodeExists) {
			return nil
		}
		return err
	})
}

func zkKept(t *testing.T, servers []string) (kept bool) {
	t.Helper()
	withZookeeper(t, servers, func(c *zk.Conn) (err error) {
		kept, _, err = c.Exists("/kept")
		return err
	})
	return kept
}

func withZookeeper(t *testing.T, servers []string, use func(*zk.Conn) error) {
	t.Helper()
	conn, _, err := zk.Connect(servers, 10*time.Second, zk.WithLogInfo(false))
	must(t, err)
	defer conn.Close()
	must(t, use(conn))
}

func body(t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	must(t, err)
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	must(t, err)
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	must(t, err)
	return string(text)
}
