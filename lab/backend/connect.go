package backend

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/go-zookeeper/zk"
	"github.com/redis/go-redis/v9"
)

// OpenMySQL returns a pool for the server with this dsn.
func OpenMySQL(dsn string) (*sql.DB, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, fmt.Errorf("mysql: %w", err)
	}
	cfg.Logger = &mysql.NopLogger{} // the default prints each refused connection
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("mysql: %w", err)
	}
	return sql.OpenDB(connector), nil
}

// WithMySQL opens a pool for the server with this dsn, and closes it when use returns.
func WithMySQL(dsn string, use func(*sql.DB) error) error {
	db, err := OpenMySQL(dsn)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	if err := use(db); err != nil {
		return fmt.Errorf("mysql: %w", err)
	}
	return nil
}

// MySQLValue returns the first column of the query's first row.
func MySQLValue(ctx context.Context, dsn, query string) (value string, err error) {
	err = WithMySQL(dsn, func(db *sql.DB) error { return db.QueryRowContext(ctx, query).Scan(&value) })
	return value, err
}

// ExecuteMySQL executes a statement.
func ExecuteMySQL(ctx context.Context, dsn, statement string) error {
	return WithMySQL(dsn, func(db *sql.DB) error {
		_, err := db.ExecContext(ctx, statement)
		return err
	})
}

// WithRedis opens a client of the Redis at url, and closes it when use returns.
func WithRedis(url string, use func(*redis.Client) error) error {
	options, err := redis.ParseURL(url)
	if err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	options.ContextTimeoutEnabled = true
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	if err := use(client); err != nil {
		return fmt.Errorf("redis at %s: %w", options.Addr, err) // the URL has a password
	}
	return nil
}

// WithZooKeeper connects to one of the servers, given as host:port, and ends the session when use returns.
func WithZooKeeper(servers []string, use func(*zk.Conn) error) error {
	const sessionTimeout = 10 * time.Second
	conn, _, err := zk.Connect(servers, sessionTimeout, zk.WithLogger(Silent{}))
	if err == nil {
		defer conn.Close()
		err = use(conn)
	}
	if err != nil {
		return fmt.Errorf("zookeeper: %w", err)
	}
	return nil
}

// Silent is a logger for a client of ZooKeeper. It prints nothing.
type Silent struct{}

// Printf implements [zk.Logger].
func (Silent) Printf(string, ...any) {}

// redisInfo returns a section of what the command INFO reports.
func redisInfo(ctx context.Context, url, section string) (text string, err error) {
	err = WithRedis(url, func(client *redis.Client) (err error) {
		text, err = client.Info(ctx, section).Result()
		return err
	})
	return text, err
}

// Exchange sends a request to the server at addr, and returns the lines of its answer. The answer ends with
// the first line that begins with last, or when the server closes the connection.
func Exchange(ctx context.Context, addr, request, last string) (answer string, err error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	// The end of ctx ends the exchange at once.
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })()
	if _, err = io.WriteString(conn, request); err != nil {
		return "", fmt.Errorf("%s: %w", addr, err)
	}
	var text strings.Builder
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		text.WriteString(lines.Text() + "\n")
		if last != "" && strings.HasPrefix(lines.Text(), last) {
			return text.String(), nil
		}
	}
	if err := lines.Err(); err != nil {
		return text.String(), fmt.Errorf("%s: %w, after %q", addr, err, text.String())
	}
	return text.String(), nil
}
