package stock

import (
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// ErrPublicKey means that the text is not the public key of a MySQL server.
var ErrPublicKey = errors.New("has no RSA public key in PEM format")

// errDSN replaces errors of the driver that quote a part of the DSN: this part may be the password.
var errDSN = errors.New("it must look like user:password@tcp(host:port)/database?tls=true")

func parse(dsn string) (*mysql.Config, error) {
	cfg, err := mysql.ParseDSN(dsn)
	switch {
	case err == nil:
		if cfg.Params == nil {
			cfg.Params = map[string]string{}
		}
		return cfg, nil
	case strings.HasPrefix(err.Error(), "invalid DSN:"): // a constant text
		return nil, fmt.Errorf("mysql address: %w; %w", err, errDSN)
	default:
		return nil, fmt.Errorf("mysql address: %w", errDSN)
	}
}

// SecureDSN adds a configuration of TLS to a DSN, and the public key of the server for users whose
// plugin is caching_sha2_password. Both may be empty.
func SecureDSN(dsn string, config *tls.Config, publicKey string) (string, error) {
	if config == nil && publicKey == "" {
		return dsn, nil
	}
	cfg, err := parse(dsn)
	if err != nil {
		return "", err
	}
	const name = "oversell" // the driver finds both under a name in the DSN
	if config != nil {
		if cfg.TLSConfig != "" && cfg.TLSConfig != "true" {
			return "", fmt.Errorf("mysql address: the certificates need tls=true in the DSN, and it has tls=%s", cfg.TLSConfig)
		}
		if err := mysql.RegisterTLSConfig(name, config); err != nil {
			return "", fmt.Errorf("mysql address: %w", err)
		}
		cfg.TLSConfig = name
	}
	if publicKey != "" {
		block, _ := pem.Decode([]byte(publicKey))
		if block == nil {
			return "", ErrPublicKey
		}
		key, _ := x509.ParsePKIXPublicKey(block.Bytes) // after an error, it is no RSA key
		rsaKey, ok := key.(*rsa.PublicKey)
		if !ok {
			return "", ErrPublicKey
		}
		mysql.RegisterServerPubKey(name, rsaKey)
		cfg.ServerPubKey = name
	}
	return cfg.FormatDSN(), nil
}
