package rig

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// makeCertificates writes an authority, and a certificate for loopback that it has signed, which all servers
// and replicas use. The authority's own key is stored nowhere.
func makeCertificates(dir string) (*Certificates, error) {
	authority, err1 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	key, err2 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	from, to := time.Now().Add(-time.Hour), time.Now().Add(30*24*time.Hour)
	issuer := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "oversell lab"}, NotBefore: from, NotAfter: to,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "a server or replica of the lab"}, NotBefore: from, NotAfter: to,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.ParseIP(loopback)}, DNSNames: []string{"localhost"},
	}
	files := &Certificates{CA: filepath.Join(dir, "ca.pem"), Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	ca, err1 := x509.CreateCertificate(rand.Reader, issuer, issuer, authority.Public(), authority)
	cert, err2 := x509.CreateCertificate(rand.Reader, leaf, issuer, key.Public(), authority)
	private, err3 := x509.MarshalPKCS8PrivateKey(key)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	return files, errors.Join(writePEM(files.CA, "CERTIFICATE", ca), writePEM(files.Cert, "CERTIFICATE", cert), writePEM(files.Key, "PRIVATE KEY", private))
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

// secureEnv returns the variables of a replica for a lab with TLS. ZooKeeper has no list of users: a node
// belongs to the user that created it.
func (r *Rig) secureEnv() []string {
	files := r.cfg.Certificates
	return []string{
		"MYSQL_CA_FILE=" + files.CA, "ETCD_CA_FILE=" + files.CA,
		"ZK_CA_FILE=" + files.CA, "ZK_CERT_FILE=" + files.Cert, "ZK_KEY_FILE=" + files.Key,
		"ZK_AUTH=" + r.secrets.name + ":" + r.secrets.user,
	}
}
