package backend

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/go-zookeeper/zk"
	"github.com/redis/go-redis/v9"
)

// FlushRedis deletes all keys of the Redis at url, and returns their number.
func FlushRedis(ctx context.Context, url string) (keys int64, err error) {
	err = WithRedis(url, func(client *redis.Client) (err error) {
		if keys, err = client.DBSize(ctx).Result(); err == nil {
			err = client.FlushAll(ctx).Err()
		}
		return err
	})
	return keys, err
}

// DeleteMySQLLocks deletes the rows of all tables of locks: ours, and all that another program has made. It returns
// the number of deleted rows. A row that a transaction has locked stays.
func DeleteMySQLLocks(ctx context.Context, dsn string) (rows int64, err error) {
	return executeAll(ctx, dsn, "SELECT CONCAT('DELETE FROM `', table_name, '`') FROM information_schema.tables "+
		"WHERE table_schema = DATABASE() AND (table_name REGEXP 'lock|queue' OR table_name NOT REGEXP '^(db|goose)_')")
}

// KillMySQLConnections ends all other connections of the dsn's user. This frees their row locks and
// their named locks. It returns the number of these connections.
func KillMySQLConnections(ctx context.Context, dsn string) (connections int64, err error) {
	return executeAll(ctx, dsn, "SELECT CONCAT('KILL ', id) FROM information_schema.processlist "+
		"WHERE id <> CONNECTION_ID() AND user = SUBSTRING_INDEX(USER(), '@', 1)")
}

// executeAll executes the statements that the query list returns, and adds up the rows they change.
func executeAll(ctx context.Context, dsn, list string) (changed int64, err error) {
	err = WithMySQL(dsn, func(db *sql.DB) error {
		db.SetMaxOpenConns(1) // all statements have the same CONNECTION_ID
		if _, err := db.ExecContext(ctx, "SET innodb_lock_wait_timeout = 1"); err != nil {
			return err
		}
		statements, err := texts(ctx, db, list)
		if err != nil {
			return err
		}
		for _, statement := range statements {
			result, err := db.ExecContext(ctx, statement)
			// A row is locked; or a connection has ended by itself, or is just ending: MariaDB then has forgotten whose it is.
			const lockWait, noSuchThread, notOwner = 1205, 1094, 1095
			if refused := new(mysql.MySQLError); errors.As(err, &refused) && slices.Contains([]uint16{lockWait, noSuchThread, notOwner}, refused.Number) {
				continue
			}
			if err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
			n, _ := result.RowsAffected() // this driver always knows them
			if strings.HasPrefix(statement, "KILL ") {
				n = 1
			}
			changed += n
		}
		return nil
	})
	return changed, err
}

func texts(ctx context.Context, db *sql.DB, query string) (all []string, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, rows.Err()
}

// EphemeralNodes returns the paths of all nodes that belong to a session. Every lock on ZooKeeper has such
// nodes: with persistent nodes, a dead holder would keep the lock for ever.
func EphemeralNodes(servers []string) (paths []string, err error) {
	err = WithZooKeeper(servers, func(conn *zk.Conn) error {
		paths, err = ephemeralBelow(conn, "/")
		return err
	})
	return paths, err
}

func ephemeralBelow(conn *zk.Conn, node string) (paths []string, err error) {
	children, stat, err := conn.Children(node)
	switch {
	case errors.Is(err, zk.ErrNoNode): // deleted meanwhile
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("list %s: %w", node, err)
	case stat.EphemeralOwner > 0: // a container has a negative owner
		return []string{node}, nil
	}
	for _, child := range children {
		more, err := ephemeralBelow(conn, path.Join(node, child))
		if err != nil {
			return nil, err
		}
		paths = append(paths, more...)
	}
	return paths, nil
}

// DeleteEphemeralNodes deletes all nodes that belong to a session, and returns their number.
func DeleteEphemeralNodes(servers []string) (nodes int64, err error) {
	err = WithZooKeeper(servers, func(conn *zk.Conn) error {
		paths, err := ephemeralBelow(conn, "/")
		for _, node := range paths {
			if err := conn.Delete(node, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
				return fmt.Errorf("delete %s: %w", node, err)
			}
			nodes++
		}
		return err
	})
	return nodes, err
}

// allKeys is a range of etcd from the first key to the last. "AA==" is a zero byte.
const allKeys = `"key": "AA==", "range_end": "AA=="`

// EtcdLeases returns the lease of each key in the etcd at addr that has one.
func EtcdLeases(ctx context.Context, addr string) (leases []string, err error) {
	var answer struct{ Kvs []struct{ Lease string } }
	err = askEtcd(ctx, http.MethodPost, addr, "/v3/kv/range", "{"+allKeys+`, "keys_only": true}`, &answer)
	for _, key := range answer.Kvs {
		if key.Lease != "" {
			leases = append(leases, key.Lease)
		}
	}
	return leases, err
}

// RevokeEtcdLease ends a lease, and so deletes its keys.
func RevokeEtcdLease(ctx context.Context, addr, lease string) error {
	return askEtcd(ctx, http.MethodPost, addr, "/v3/lease/revoke", `{"ID": "`+lease+`"}`, nil)
}

// DeleteEtcdKeys deletes all keys of the etcd at addr, and returns their number. Leases stay.
func DeleteEtcdKeys(ctx context.Context, addr string) (keys int64, err error) {
	var answer struct {
		Deleted int64 `json:",string"`
	}
	err = askEtcd(ctx, http.MethodPost, addr, "/v3/kv/deleterange", "{"+allKeys+"}", &answer)
	return answer.Deleted, err
}
