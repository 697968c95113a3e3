package stock

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
)

const (
	// nodeTimeout limits the time to connect to a node, because the next one may answer at once. It is less
	// than writeTimeout, and much more than a busy node needs: a change of the node ends all connections.
	nodeTimeout = 4 * time.Second
	// nodePause is the time after which a node that failed is tried again.
	nodePause = 5 * time.Second
	// syncWait is the variable of Galera with which a read waits for all earlier commits of the cluster.
	// By default a node may return older data: a lock outside the database would not protect the stock.
	syncWait = "wsrep_sync_wait"
)

// unwrapped returns the address of a DSN as it was written. The driver takes a list of hosts for one
// IPv6 address, and adds brackets and a port: [a:3306,b:3306]:3306.
func unwrapped(addr string) string {
	inner, added := strings.CutSuffix(addr, "]:3306")
	if !added || !strings.HasPrefix(addr, "[") || !strings.Contains(addr, ",") {
		return addr
	}
	return inner[1:]
}

// addresses returns the host:port of each node that a DSN names, such as tcp(a:3306,b:3306).
func addresses(cfg *mysql.Config) []string {
	if cfg.Net != "tcp" || !strings.Contains(cfg.Addr, ",") {
		return []string{cfg.Addr}
	}
	all := strings.Split(cfg.Addr, ",")
	for i, addr := range all {
		addr = strings.TrimSpace(addr)
		all[i] = addr
		if _, _, err := net.SplitHostPort(addr); err != nil {
			all[i] = net.JoinHostPort(strings.Trim(addr, "[]"), "3306")
		}
	}
	return all
}

// connectorOf returns the driver's connector for one address, or one for the nodes of a Galera cluster.
func connectorOf(cfg *mysql.Config) (driver.Connector, error) {
	all := addresses(cfg)
	if len(all) == 1 {
		return mysql.NewConnector(cfg)
	}
	if cfg.Params[syncWait] == "" {
		cfg.Params[syncWait] = "1"
	}
	g := &galera{addrs: all, failed: make([]time.Time, len(all))}
	for _, addr := range all {
		node := cfg.Clone()
		node.Addr, node.TLS = addr, nil // NewConnector sets TLS anew, for the name of this host
		connector, err := mysql.NewConnector(node)
		if err != nil {
			return nil, err
		}
		g.nodes = append(g.nodes, connector)
	}
	return g, nil
}

// galera connects to the first node of a Galera cluster that can be used, in the order of the DSN. So
// replicas with the same DSN write at the same node, and their row locks exclude each other. When the
// node changes, the connections to the old one end as soon as their transactions have ended.
//
// DANGER: replicas notice a change at different times. Until all have, they write at two nodes, where
// locks of the database exclude nobody: a commit fails with error 1213, and GET_LOCK has no effect.
type galera struct {
	nodes []driver.Connector
	addrs []string

	mu     sync.Mutex
	writer int         // the node of the newest connection
	failed []time.Time // when each node could not be used
	tried  time.Time   // when a connection was given up to try an earlier node
}

// Driver returns the driver of MySQL.
func (g *galera) Driver() driver.Driver { return g.nodes[0].Driver() }

// Connect returns a connection to the first node that can be used.
func (g *galera) Connect(ctx context.Context) (driver.Conn, error) {
	var errs []error
	for _, node := range g.order(time.Now()) {
		conn, err := g.connect(ctx, node)
		if err == nil {
			g.use(node)
			return nodeConn{conn, g, node}, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		g.fail(node)
		errs = append(errs, fmt.Errorf("%s: %w", g.addrs[node], err))
	}
	return nil, fmt.Errorf("no node can be used: %w", errors.Join(errs...))
}

func (g *galera) connect(ctx context.Context, node int) (fullConn, error) {
	ctx, cancel := context.WithTimeout(ctx, nodeTimeout)
	defer cancel()
	conn, err := g.nodes[node].Connect(ctx)
	if err != nil {
		return nil, err
	}
	full, ok := conn.(fullConn)
	if !ok {
		err = errors.New("this connection of the driver lacks methods")
	} else {
		err = checkSynced(ctx, full)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return full, nil
}

// checkSynced returns an error if the node has not all data, or not the majority of the cluster.
func checkSynced(ctx context.Context, conn driver.QueryerContext) error {
	rows, err := conn.QueryContext(ctx, "SHOW GLOBAL STATUS LIKE 'wsrep_local_state_comment'", nil)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	row := make([]driver.Value, 2)
	switch err := rows.Next(row); {
	case errors.Is(err, io.EOF):
		return errors.New("it is no node of Galera, which a DSN with several hosts needs")
	case err != nil:
		return err
	}
	if state := fmt.Sprintf("%s", row[1]); state != "Synced" {
		return fmt.Errorf("the state of the node is %q, not Synced", state)
	}
	return nil
}

// order returns the nodes in the order in which to try them: those that failed a moment ago come last.
func (g *galera) order(now time.Time) []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	order := make([]int, len(g.nodes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(g.paused(a, now), g.paused(b, now)) })
	return order
}

// paused returns 1 if the node failed a moment ago, else 0.
func (g *galera) paused(node int, now time.Time) int {
	if failed := g.failed[node]; !failed.IsZero() && now.Sub(failed) < nodePause {
		return 1
	}
	return 0
}

func (g *galera) use(node int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.writer, g.failed[node] = node, time.Time{}
}

func (g *galera) fail(node int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failed[node] = time.Now()
}

// keeps reports whether a connection to the node may be used again. From time to time it gives up one
// connection, so that the pool opens a new one: an earlier node may work again.
func (g *galera) keeps(node int, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if node != g.writer || !g.failed[node].IsZero() {
		return false
	}
	for earlier := range node {
		if g.paused(earlier, now) == 0 && now.Sub(g.tried) >= nodePause {
			g.tried = now
			return false
		}
	}
	return true
}

// note looks for error 1047: a node without the majority of the cluster rejects all statements, but
// keeps its connections open.
func (g *galera) note(node int, err error) {
	var answer *mysql.MySQLError
	if errors.As(err, &answer) && answer.Number == notReady {
		g.fail(node)
	}
}

// nodeConn is a connection to a node of a Galera cluster.
type nodeConn struct {
	fullConn
	galera *galera
	node   int
}

// ResetSession is called before a connection of the pool is used again.
func (c nodeConn) ResetSession(ctx context.Context) error {
	if !c.galera.keeps(c.node, time.Now()) {
		return driver.ErrBadConn
	}
	return c.fullConn.ResetSession(ctx)
}

func (c nodeConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	result, err := c.fullConn.ExecContext(ctx, query, args)
	c.galera.note(c.node, err)
	return result, err
}

func (c nodeConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.fullConn.QueryContext(ctx, query, args)
	c.galera.note(c.node, err)
	return rows, err
}

func (c nodeConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := c.fullConn.BeginTx(ctx, opts)
	c.galera.note(c.node, err)
	return tx, err
}
