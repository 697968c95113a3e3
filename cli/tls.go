package cli

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"oversell/locks/etcdlock"
	"oversell/locks/zklock"
	"oversell/stock"
)

// certificates are the settings of TLS for one backend. Each is text in PEM format, or comes from
// the file that the variable with _FILE names.
type certificates struct {
	CA   string `env:"CA"`   // the authorities that may sign the server's certificate; empty means those of the system
	Cert string `env:"CERT"` // the certificate of this replica, if the server requires one
	Key  string `env:"KEY"`  // its private key
}

// config returns nil if no certificate is set. No error shows a part of the texts.
func (c certificates) config(prefix string) (*tls.Config, error) {
	if c == (certificates{}) {
		return nil, nil //nolint:nilnil // the drivers have the same meaning of nil: no TLS
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CA != "" {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM([]byte(c.CA)) {
			return nil, fmt.Errorf("%[1]sCA has no certificate in PEM format; to name a file, set %[1]sCA_FILE", prefix)
		}
	}
	if (c.Cert == "") != (c.Key == "") {
		return nil, fmt.Errorf("%[1]sCERT and %[1]sKEY need each other: set both, or none", prefix)
	}
	if c.Cert != "" {
		pair, err := tls.X509KeyPair([]byte(c.Cert), []byte(c.Key))
		if err != nil {
			return nil, fmt.Errorf("%[1]sCERT and %[1]sKEY are not a certificate and its key in PEM format; to name files, set %[1]sCERT_FILE and %[1]sKEY_FILE: %[2]w", prefix, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// mysqlDSN adds the certificates and the public key of the settings to a DSN.
func (s settings) mysqlDSN(dsn string) (string, error) {
	config, err := s.MySQLCerts.config("MYSQL_")
	if err != nil {
		return "", err
	}
	dsn, err = stock.SecureDSN(dsn, config, s.MySQLKey)
	if errors.Is(err, stock.ErrPublicKey) {
		err = fmt.Errorf("MYSQL_PUBLIC_KEY: %w; to name a file, set MYSQL_PUBLIC_KEY_FILE", err)
	}
	return dsn, err
}

// zooKeeperAccess returns how to connect to ZooKeeper with the settings.
func (s settings) zooKeeperAccess() (zklock.Access, error) {
	config, err := s.ZKCerts.config("ZK_")
	if err != nil {
		return zklock.Access{}, err
	}
	if config == nil && s.ZKTLS {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if user, password, ok := strings.Cut(s.ZKAuth, ":"); s.ZKAuth != "" && (!ok || user == "" || password == "") {
		return zklock.Access{}, errors.New("ZK_AUTH must be user:password")
	}
	return zklock.Access{Digest: s.ZKAuth, TLS: config}, nil
}

// etcdAccess returns how to connect to etcd with the settings.
func (s settings) etcdAccess() (etcdlock.Access, error) {
	config, err := s.EtcdCerts.config("ETCD_")
	if err != nil {
		return etcdlock.Access{}, err
	}
	user, password, ok := strings.Cut(s.EtcdAuth, ":")
	if s.EtcdAuth != "" && (!ok || user == "" || password == "") {
		return etcdlock.Access{}, errors.New("ETCD_AUTH must be user:password")
	}
	for _, endpoint := range s.Etcd {
		if config != nil && strings.HasPrefix(endpoint, "http://") {
			return etcdlock.Access{}, errors.New("ETCD_ENDPOINTS has an http:// address, and ETCD_CA or ETCD_CERT needs TLS: write https://, or only host:port")
		}
	}
	return etcdlock.Access{User: user, Password: password, TLS: config}, nil
}
