package backend

import (
	"context"
	"database/sql"
	"encoding/json"
	"net/http"
	"regexp"
	"time"

	"github.com/redis/go-redis/v9"
)

// Versions adds the version of each kind's first server, if that server answers within a second.
func Versions(ctx context.Context, versions map[string]string, mysql string, redisURLs, zookeeper, etcd []string) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for _, server := range []struct {
		name    string
		addrs   []string
		version func(ctx context.Context, addr string) (string, error)
	}{
		{"mysql", []string{mysql}, mysqlVersion},
		{"redis", redisURLs, redisVersion},
		{"zookeeper", zookeeper, zookeeperVersion},
		{"etcd", etcd, etcdVersion},
	} {
		if len(server.addrs) == 0 || server.addrs[0] == "" {
			continue
		}
		if v, err := server.version(ctx, server.addrs[0]); err == nil && v != "" {
			versions[server.name] = v
		}
	}
}

func mysqlVersion(ctx context.Context, dsn string) (version string, err error) {
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		return "", err
	}
	defer func() { _ = db.Close() }()
	err = db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version)
	return version, err
}

func redisVersion(ctx context.Context, url string) (string, error) {
	options, err := redis.ParseURL(url)
	if err != nil {
		return "", err
	}
	options.ContextTimeoutEnabled = true
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	text, err := client.Info(ctx, "server").Result()
	return group(`redis_version:(\S+)`, text), err
}

func zookeeperVersion(ctx context.Context, addr string) (string, error) {
	text, err := mntr(ctx, addr)
	return group(`zk_version\s+([^\s,-]+)`, text), err
}

func etcdVersion(ctx context.Context, addr string) (string, error) {
	text, err := requestEtcd(ctx, http.MethodGet, addr, "/version", "")
	if err != nil {
		return "", err
	}
	var answer struct {
		Server string `json:"etcdserver"`
	}
	err = json.Unmarshal(text, &answer)
	return answer.Server, err
}

func group(pattern, text string) string {
	if found := regexp.MustCompile(pattern).FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return ""
}
