package rig_test

import (
	"database/sql"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"github.com/go-zookeeper/zk"
	"github.com/redis/go-redis/v9"
)

func mysqlWrite(t *testing.T, dsn string) {
	t.Helper()
	withMySQL(t, dsn, func(db *sql.DB) error {
		_, err := db.ExecContext(t.Context(), "CREATE TABLE IF NOT EXISTS kept (name VARCHAR(20) PRIMARY KEY)")
		if err == nil {
			_, err = db.ExecContext(t.Context(), "REPLACE INTO kept VALUES ('商品')")
		}
		return err
	})
}

func mysqlKept(t *testing.T, dsn string) (kept bool) {
	t.Helper()
	withMySQL(t, dsn, func(db *sql.DB) error {
		return db.QueryRowContext(t.Context(), "SELECT COUNT(*) > 0 FROM kept WHERE name = '商品'").Scan(&kept)
	})
	return kept
}

func withMySQL(t *testing.T, dsn string, use func(*sql.DB) error) {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	must(t, err)
	must(t, use(db))
	must(t, db.Close())
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
