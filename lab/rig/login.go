package rig

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/go-zookeeper/zk"
	etcd "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"oversell/lab/backend"
)

// addLogin returns the options of ZooKeeper for Config.Login. The server reads jaas.conf, and so does ZooKeeper's own
// client. That client can pass a digest only by hand, so it logs in by SASL. The server then gives it all rights.
func (r *Rig) addLogin(s *Server) []string {
	if !r.cfg.Login {
		return nil
	}
	r.addrs.JAAS = s.conf("jaas.conf", map[string]any{"User": r.secrets.name, "Password": r.secrets.user})
	return []string{
		"-Djava.security.auth.login.config=" + r.addrs.JAAS,
		"-Dzookeeper.authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
		"-Dzookeeper.superUser=" + r.secrets.name,
	}
}

// refuseStrangers makes ZooKeeper and etcd refuse clients without Addresses.Login.
func (r *Rig) refuseStrangers(ctx context.Context) error {
	if !r.cfg.Login {
		return nil
	}
	user, password, _ := strings.Cut(r.addrs.Login, ":")
	err1 := ownZookeeper(r.addrs.Zookeeper, user, password)
	err2 := r.ownEtcd(ctx, user, password)
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("rig: set a password: %w", err)
	}
	return nil
}

// ownZookeeper gives the nodes that a new server has to the user. Replicas create all others below them.
func ownZookeeper(servers []string, user, password string) error {
	if len(servers) == 0 {
		return nil
	}
	return backend.WithZooKeeper(servers, func(conn *zk.Conn) error {
		err := conn.AddAuth("digest", []byte(user+":"+password))
		for _, node := range []string{"/zookeeper/quota", "/zookeeper", "/"} {
			if err == nil {
				_, err = conn.SetACL(node, zk.DigestACL(zk.PermAll, user, password), -1)
			}
		}
		return err
	})
}

// ownEtcd adds a user with all rights. etcd requires a user root, which nobody uses here.
func (r *Rig) ownEtcd(ctx context.Context, user, password string) error {
	if len(r.addrs.Etcd) == 0 {
		return nil
	}
	cfg := etcd.Config{Endpoints: r.addrs.Etcd, DialTimeout: readyTimeout, Logger: zap.NewNop()}
	if r.addrs.CA != "" {
		pem, err := os.ReadFile(r.addrs.CA)
		if err != nil {
			return err
		}
		cfg.TLS = &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
		cfg.TLS.RootCAs.AppendCertsFromPEM(pem)
	}
	c, err := etcd.New(cfg)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	const all = "root" // the role with all rights, and the user that must have it; user may be root, too
	_, err = c.RoleAdd(ctx, all)
	for name, password := range map[string]string{all: r.secrets.admin, user: password} {
		if err == nil {
			_, err = c.UserAdd(ctx, name, password)
		}
		if err == nil {
			_, err = c.UserGrantRole(ctx, name, all)
		}
	}
	if err == nil {
		_, err = c.AuthEnable(ctx)
	}
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	return nil
}
