package backend

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"time"
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
		{"mysql", []string{mysql}, MySQLVersion},
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

// MySQLVersion returns a version such as 9.7.0 or 11.8.3-MariaDB.
func MySQLVersion(ctx context.Context, dsn string) (string, error) {
	version, err := MySQLValue(ctx, dsn, "SELECT VERSION()")
	return strings.TrimSuffix(version, "-log"), err // a server with a binary log adds it
}

func redisVersion(ctx context.Context, url string) (string, error) {
	text, err := redisInfo(ctx, url, "server")
	return group(`redis_version:(\S+)`, text), err
}

func zookeeperVersion(ctx context.Context, addr string) (string, error) {
	text, err := mntr(ctx, addr)
	return group(`zk_version\s+([^\s,-]+)`, text), err
}

func etcdVersion(ctx context.Context, addr string) (string, error) {
	var answer struct {
		Server string `json:"etcdserver"`
	}
	err := askEtcd(ctx, http.MethodGet, addr, "/version", "{}", &answer)
	return answer.Server, err
}

func group(pattern, text string) string {
	if found := regexp.MustCompile(pattern).FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return ""
}
