package cli

import (
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver of sql.Open below
	"github.com/redis/go-redis/v9"

	"oversell/lab/rig"
)

// serverVersions asks the servers of a lab what they are. Who does not answer in a
// second is left out: a figure without a version beats no figure.
func serverVersions(ctx context.Context, addrs rig.Addresses, versions map[string]string) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for name, ask := range map[string]func(context.Context, rig.Addresses) string{
		"mysql": mysqlVersion, "redis": redisVersion, "zookeeper": zookeeperVersion, "etcd": etcdVersion,
	} {
		if v := ask(ctx, addrs); v != "" {
			versions[name] = v
		}
	}
}

func mysqlVersion(ctx context.Context, addrs rig.Addresses) string {
	if addrs.MySQL == "" {
		return ""
	}
	db, err := sql.Open("mysql", addrs.MySQL)
	if err != nil {
		return ""
	}
	defer func() { _ = db.Close() }()
	var v string
	if err := db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&v); err != nil {
		return ""
	}
	return v
}

func redisVersion(ctx context.Context, addrs rig.Addresses) string {
	if len(addrs.Redis) == 0 {
		return ""
	}
	options, err := redis.ParseURL(addrs.Redis[0])
	if err != nil {
		return ""
	}
	options.ContextTimeoutEnabled = true
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	info, err := client.Info(ctx, "server").Result()
	if err != nil {
		return ""
	}
	return after(info, "redis_version:", "\r\n")
}

// zookeeperVersion asks with the four letters that every server answers.
func zookeeperVersion(ctx context.Context, addrs rig.Addresses) string {
	if len(addrs.Zookeeper) == 0 {
		return ""
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addrs.Zookeeper[0])
	if err != nil {
		return ""
	}
	defer func() { _ = conn.Close() }()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		return ""
	}
	said, _ := io.ReadAll(io.LimitReader(conn, 4096)) // what came, came
	return after(string(said), "Zookeeper version: ", "-", ",", "\n")
}

// etcdVersion asks by HTTP, which etcd speaks as well.
func etcdVersion(ctx context.Context, addrs rig.Addresses) string {
	if len(addrs.Etcd) == 0 {
		return ""
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addrs.Etcd[0]+"/version", nil)
	if err != nil {
		return ""
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return ""
	}
	defer func() { _ = res.Body.Close() }()
	var said struct {
		Server string `json:"etcdserver"`
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, 4096)).Decode(&said); err != nil {
		return ""
	}
	return said.Server
}

// after is what stands between the mark and the first of the ends.
func after(s, mark string, ends ...string) string {
	_, found, ok := strings.Cut(s, mark)
	if !ok {
		return ""
	}
	for _, end := range ends {
		found, _, _ = strings.Cut(found, end)
	}
	return strings.TrimSpace(found)
}
