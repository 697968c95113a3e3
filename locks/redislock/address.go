package redislock

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Options reads an address, see Open. Its errors do not contain the password.
func Options(address string) (*redis.UniversalOptions, error) {
	scheme, rest, _ := strings.Cut(address, "://")
	kind, secure, ok := kindOf(scheme)
	if !ok {
		return nil, errors.New("it must begin with redis://, rediss://, redis-sentinel:// or redis-cluster://")
	}
	// A password may contain a slash only as %2F, so the first slash ends the hosts.
	rest, query, _ := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	// The rest of the password would be taken for a database or a parameter, which errors name.
	if strings.Contains(path, "@") || strings.Contains(query, "@") && !strings.Contains(query, "sentinel=") {
		return nil, errors.New("the password has a special character: write / as %2F, ? as %3F, # as %23 and % as %25")
	}
	user, hosts := "", authority
	if at := strings.LastIndex(authority, "@"); at >= 0 {
		user, hosts = authority[:at+1], authority[at+1:]
	}
	all := strings.Split(hosts, ",")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	if len(all) > 1 && kind == "" {
		return nil, errors.New("several hosts need redis-sentinel:// or redis-cluster://")
	}
	u, err := url.Parse("redis://" + user + all[0] + "/") // which accepts one host only
	if err != nil {
		return nil, errors.Unwrap(err) // without the address, which may contain a password
	}
	o := &redis.UniversalOptions{Username: u.User.Username(), IsClusterMode: kind == "cluster"}
	o.Password, _ = u.User.Password()
	port := "6379"
	if kind == "sentinel" {
		port = "26379"
	}
	for _, host := range all {
		if host == "" {
			return nil, errors.New("a host is missing")
		}
		if !strings.Contains(host[strings.LastIndex(host, "]")+1:], ":") { // the colons of IPv6 are in brackets
			host += ":" + port
		}
		o.Addrs = append(o.Addrs, host)
	}
	if err := parsePath(o, kind, strings.Trim(path, "/")); err != nil {
		return nil, err
	}
	return o, parseQuery(o, secure, query)
}

func kindOf(scheme string) (kind string, secure, ok bool) {
	base, kind, _ := strings.Cut(scheme, "-")
	known := kind == "" && !strings.HasSuffix(scheme, "-") || kind == "sentinel" || kind == "cluster"
	return kind, base == "rediss", known && (base == "redis" || base == "rediss")
}

func parsePath(o *redis.UniversalOptions, kind, path string) (err error) {
	switch kind {
	case "sentinel":
		name, db, ok := strings.Cut(path, "/")
		if o.MasterName = name; name == "" {
			return errors.New("redis-sentinel:// needs the name of the master, as in redis-sentinel://host:26379/mymaster")
		}
		if !ok {
			return nil
		}
		path = db
	case "cluster":
		if path != "" && path != "0" {
			return errors.New("a cluster has no databases: leave out what follows the hosts")
		}
		return nil
	}
	if path == "" {
		return nil
	}
	if o.DB, err = strconv.Atoi(path); err != nil || o.DB < 0 {
		return fmt.Errorf("the database is %q, and must be a number", path)
	}
	return nil
}

func parseQuery(o *redis.UniversalOptions, secure bool, query string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return errors.New("its parameters cannot be read: write %25 for a percent sign")
	}
	files := map[string]string{}
	for name, value := range values {
		switch name {
		case "sentinel":
			o.SentinelUsername, o.SentinelPassword, _ = strings.Cut(value[0], ":")
		case "ca", "cert", "key":
			files[name] = value[0]
		default:
			return fmt.Errorf("it has no parameter %q: there are ca, cert, key and sentinel", name)
		}
	}
	if !secure {
		if len(files) > 0 {
			return errors.New("ca, cert and key need rediss in place of redis")
		}
		return nil
	}
	o.TLSConfig, err = tlsConfig(files)
	return err
}

// tlsConfig has no name of a server: the client sets it to the host that it connects with.
func tlsConfig(files map[string]string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if files["ca"] != "" {
		text, err := os.ReadFile(files["ca"])
		if err != nil {
			return nil, fmt.Errorf("the parameter ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("the parameter ca: %s has no certificate in PEM form", files["ca"])
		}
	}
	if files["cert"] == "" && files["key"] == "" {
		return c, nil
	}
	own, err := tls.LoadX509KeyPair(files["cert"], files["key"])
	if err != nil {
		return nil, fmt.Errorf("the parameters cert and key: %w", err)
	}
	c.Certificates = []tls.Certificate{own}
	return c, nil
}
