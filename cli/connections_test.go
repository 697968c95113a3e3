package cli_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"maps"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/go-zookeeper/zk"
	clientv3 "go.etcd.io/etcd/client/v3"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
	"oversell/locks/etcdlock"
)

// The passwords that no log and no answer may show.
const (
	zkSecret    = "zk-pa55-w0rd"
	etcdSecret  = "etcd-pa55-w0rd"
	redisSecret = "redis-pa55-w0rd"
	wrongSecret = "wr0ng-pa55-w0rd"
	tokenSecret = "t0ken-pa55-w0rd"
)

// TestConnections starts replicas with right and with wrong settings for servers with users and TLS.
// /readyz and the log must say what is wrong and what to do, and must not show a secret. make test has a few
// of the wrong settings, and make nightly all.
func TestConnections(t *testing.T) {
	t.Parallel()
	c := newConnections(t)
	c.prepareZooKeeper(t)
	c.prepareEtcd(t)

	t.Run("right", func(t *testing.T) {
		r := c.start(t, map[string]string{"ZK_SESSION": "90s"}) // the lab's server grants 60 s
		r.await(t, map[string]string{
			"mysql": "ok", "zookeeper": "ok", "etcd": "ok",
			"redis": "nothing listens at the address: start the server, or correct REDIS_URL (",
		})
		r.get(t, http.MethodPut, "/stock/1?count=5")
		for _, strategy := range []string{"zk", "etcd"} {
			if answer := r.get(t, http.MethodGet, "/check/lock?strategy="+strategy); !strings.Contains(answer, `"outcome":"sold"`) {
				t.Errorf("%s: %s", strategy, answer)
			}
		}
		c.checkACLs(t)
		if line := "ZK_SESSION=1m30s granted=1m0s"; !strings.Contains(r.log.String(), line) {
			t.Errorf("the log has no %s:\n%s", line, r.log)
		}
	})
	for _, test := range []struct {
		name string
		set  map[string]string
		want map[string]string
	}{
		{
			"wrong passwords",
			map[string]string{"MYSQL_DSN": c.dsn(wrongSecret, "127.0.0.1"), "ZK_AUTH": "oversell:" + wrongSecret, "ETCD_AUTH": "oversell:" + wrongSecret},
			map[string]string{
				"mysql":     "the server refused the user: check the user and the password in MYSQL_DSN, and MYSQL_PUBLIC_KEY if it is set.",
				"zookeeper": "the server refused the user of ZK_AUTH: the nodes belong to another user, or the password is wrong.",
				"etcd":      "the server refused the user of ETCD_AUTH: correct the user or the password (",
			},
		},
		{
			"no users",
			map[string]string{"ZK_AUTH": "", "ETCD_AUTH": ""},
			map[string]string{"zookeeper": "the server refused the user of ZK_AUTH:", "etcd": "the server requires a user: set ETCD_AUTH ("},
		},
		{
			"an unknown database, and a user with too few rights",
			map[string]string{"MYSQL_DSN": strings.Replace(c.dsn("", "127.0.0.1"), "/oversell", "/another", 1), "ETCD_AUTH": "guest:" + etcdSecret},
			map[string]string{"mysql": "the user has too few rights: grant all rights on the database to the user in MYSQL_DSN (", "etcd": "the user of ETCD_AUTH has too few rights: grant readwrite on the prefix /oversell/etcd/ ("},
		},
		{
			"no chroot",
			map[string]string{"ZK_SERVERS": c.rig.Addresses().ZookeeperTLS[0] + "/missing"},
			map[string]string{"zookeeper": "create the path at the end of ZK_SERVERS, for example with zkCli, or correct it (the chroot does not exist: /missing)"},
		},
		{
			"another authority",
			map[string]string{"MYSQL_CA_FILE": c.otherCA, "ZK_CA_FILE": c.otherCA, "ETCD_CA_FILE": c.otherCA},
			sameOn("the server's certificate is signed by an authority that this replica does not trust: set {}_CA_FILE to the certificate of this authority (", "MYSQL", "ZK", "ETCD"),
		},
		{
			"no client certificate",
			map[string]string{"ZK_CERT_FILE": "", "ZK_KEY_FILE": ""},
			map[string]string{"zookeeper": "the server rejected the certificate of this replica: set ZK_CERT_FILE and ZK_KEY_FILE to a valid certificate"},
		},
		{
			"an expired client certificate",
			map[string]string{"ZK_CERT_FILE": c.expiredCert},
			map[string]string{"zookeeper": "the server rejected the certificate of this replica: set ZK_CERT_FILE and ZK_KEY_FILE to a valid certificate"},
		},
		{
			"no TLS",
			map[string]string{"ZK_CA_FILE": "", "ZK_CERT_FILE": "", "ZK_KEY_FILE": "", "ETCD_CA_FILE": ""},
			sameOn("the server, or a proxy before it, closed the connection: check that the server is ready, that the proxy reaches it, and that the port expects TLS if and only if this replica uses TLS (", "ZK", "ETCD"),
		},
		{
			"TLS at a port without",
			map[string]string{"ZK_SERVERS": c.rig.Addresses().Zookeeper[0] + "/app"},
			map[string]string{"zookeeper": "the server, or a proxy before it, closed the connection: check that the server is ready"},
		},
		{
			"nothing listens",
			map[string]string{"MYSQL_DSN": "oversell:" + wrongSecret + "@tcp(127.0.0.1:1)/oversell", "ZK_SERVERS": "127.0.0.1:1", "ETCD_ENDPOINTS": "127.0.0.1:1"},
			sameOn("nothing listens at the address: start the server, or correct {} (", "MYSQL_DSN", "ZK_SERVERS", "ETCD_ENDPOINTS"),
		},
		{
			"no such host",
			map[string]string{"MYSQL_DSN": "oversell:" + wrongSecret + "@tcp(host.invalid:3306)/oversell", "ZK_SERVERS": "host.invalid:2181", "ETCD_ENDPOINTS": "host.invalid:2379"},
			sameOn("a host name cannot be resolved: correct it in {}, or check DNS (", "MYSQL_DSN", "ZK_SERVERS", "ETCD_ENDPOINTS"),
		},
	} {
		if rigtest.IsNightly() || slices.Contains([]string{"wrong passwords", "another authority", "no TLS", "nothing listens"}, test.name) {
			t.Run(test.name, func(t *testing.T) { c.start(t, test.set).await(t, test.want) })
		}
	}
	if !rigtest.IsNightly() {
		c.checkSecrets(t)
		return
	}
	selling := c.start(t, nil)
	selling.get(t, http.MethodPut, "/stock/1?count=5")
	selling.sell(t, http.StatusOK)
	t.Run("an expired certificate", func(t *testing.T) {
		c.serveWith(t, c.ca.issue(t, func(cert *x509.Certificate) { cert.NotAfter = time.Now().Add(-time.Hour) }))
		selling.sell(t, http.StatusServiceUnavailable)
		c.start(t, nil).await(t, sameOn("the server's certificate is expired or not yet valid: renew it, or correct the clock of this machine (", "MYSQL", "ZK", "ETCD"))
	})
	t.Run("the certificate of another host", func(t *testing.T) {
		c.serveWith(t, c.ca.issue(t, func(cert *x509.Certificate) {
			cert.IPAddresses, cert.DNSNames = nil, []string{"another.example"}
		}))
		selling.sell(t, http.StatusServiceUnavailable)
		c.start(t, nil).await(t, sameOn("the server's certificate is for another host name: write a name of the certificate in {}, or issue a certificate for the name in {} (", "MYSQL_DSN", "ZK_SERVERS", "ETCD_ENDPOINTS"))
	})
	c.checkSecrets(t)
}

// sameOn returns one sentence for several backends. Each name replaces {} in the sentence for its
// backend.
func sameOn(sentence string, names ...string) map[string]string {
	all := map[string]string{}
	for _, name := range names {
		prefix, _, _ := strings.Cut(name, "_")
		backend := map[string]string{"MYSQL": "mysql", "ZK": "zookeeper", "ETCD": "etcd"}[prefix]
		all[backend] = strings.ReplaceAll(sentence, "{}", name)
	}
	return all
}

// connections are servers with users and TLS.
type connections struct {
	rig *rig.Rig
	ca  authority

	files                *rig.Certificates
	otherCA, expiredCert string
	clientCert, key      string

	mu   sync.Mutex
	seen bytes.Buffer // all logs and answers of the replicas
}

func newConnections(t *testing.T) *connections {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, text, 0o600))
		return path
	}
	c := &connections{ca: newAuthority(t)}
	cert := c.ca.issue(t, func(*x509.Certificate) {})
	c.key, c.clientCert = write("key.pem", c.ca.keyPEM(t)), write("client.pem", cert)
	c.otherCA = write("other.pem", newAuthority(t).pem)
	c.expiredCert = write("expired.pem", c.ca.issue(t, func(cert *x509.Certificate) { cert.NotAfter = time.Now().Add(-time.Hour) }))
	c.files = &rig.Certificates{CA: write("ca.pem", c.ca.pem), Cert: write("server.pem", cert), Key: c.key}
	c.rig = rigtest.Start(t, rig.Config{MySQL: true, Zookeeper: 1, Etcd: 1, Certificates: c.files})
	return c
}

// dsn returns the DSN of the rig's MySQL, with another password unless it is empty.
func (c *connections) dsn(password, host string) string {
	cfg, _ := mysql.ParseDSN(c.rig.Addresses().MySQL) // of a valid DSN
	cfg.Addr = strings.Replace(cfg.Addr, "127.0.0.1", host, 1)
	cfg.TLSConfig = "true"
	if password != "" {
		cfg.Passwd = password
	}
	return cfg.FormatDSN()
}

// serveWith gives all servers another certificate, and starts them again.
func (c *connections) serveWith(t *testing.T, cert []byte) {
	t.Helper()
	must(t, os.WriteFile(c.files.Cert, cert, 0o600))
	for _, s := range c.rig.Servers() {
		must(t, s.Stop(t.Context()))
		must(t, s.Start(t.Context()))
	}
}

func (c *connections) prepareZooKeeper(t *testing.T) {
	t.Helper()
	conn := c.zooKeeper(t)
	must(t, conn.AddAuth("digest", []byte("oversell:"+zkSecret)))
	_, err := conn.Create("/app", nil, 0, zk.AuthACL(zk.PermAll))
	must(t, err)
}

func (c *connections) zooKeeper(t *testing.T) *zk.Conn {
	t.Helper()
	conn, _, err := zk.Connect(c.rig.Addresses().Zookeeper, 10*time.Second, zk.WithLogInfo(false))
	must(t, err)
	t.Cleanup(conn.Close)
	return conn
}

// checkACLs checks that all nodes of the locks are below the chroot and belong to the user.
func (c *connections) checkACLs(t *testing.T) {
	t.Helper()
	conn := c.zooKeeper(t)
	if there, _, err := conn.Exists("/oversell"); there || err != nil {
		t.Errorf("/oversell exists outside of the chroot: %v, %v", there, err)
	}
	if _, _, err := conn.Get("/app/oversell"); err == nil {
		t.Error("a session without a user can read /app/oversell")
	}
	must(t, conn.AddAuth("digest", []byte("oversell:"+zkSecret)))
	for _, node := range []string{"/app/oversell", "/app/oversell/zk", "/app/oversell/zk/stock:1"} {
		acl, _, err := conn.GetACL(node)
		if err != nil || len(acl) != 1 || acl[0].Scheme != "digest" || !strings.HasPrefix(acl[0].ID, "oversell:") || acl[0].Perms != zk.PermAll {
			t.Errorf("%s: %v, %v, want all rights for the user oversell, and for nobody else", node, acl, err)
		}
	}
}

func (c *connections) prepareEtcd(t *testing.T) {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(c.ca.pem)
	client, err := etcdlock.Open(c.rig.Addresses().Etcd, etcdlock.Access{TLS: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}})
	must(t, err)
	defer func() { _ = client.Close() }()
	ctx := t.Context()
	do := func(_ any, err error) { t.Helper(); must(t, err) }
	do(client.RoleAdd(ctx, "locks"))
	do(client.RoleGrantPermission(ctx, "locks", "/oversell/etcd/", "/oversell/etcd0", clientv3.PermissionType(clientv3.PermReadWrite)))
	for user, roles := range map[string][]string{"root": {"root"}, "oversell": {"locks"}, "guest": nil} {
		do(client.UserAdd(ctx, user, etcdSecret))
		for _, role := range roles {
			do(client.UserGrantRole(ctx, user, role))
		}
	}
	do(client.AuthEnable(ctx))
}

// checkSecrets searches all logs and answers for the secrets.
func (c *connections) checkSecrets(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	cfg, err := mysql.ParseDSN(c.rig.Addresses().MySQL)
	must(t, err)
	secrets := []string{zkSecret, etcdSecret, redisSecret, wrongSecret, tokenSecret, cfg.Passwd}
	for line := range strings.Lines(string(c.ca.keyPEM(t))) {
		secrets = append(secrets, strings.TrimSpace(line))
	}
	all := c.seen.String()
	if len(all) < 10_000 {
		t.Errorf("the replicas wrote only %d bytes", len(all))
	}
	for _, secret := range secrets {
		if before, after, found := strings.Cut(all, secret); found {
			t.Errorf("a log or an answer shows %q: …%s%s%s…", secret, before[max(0, len(before)-200):], secret, after[:min(200, len(after))])
		}
	}
}

// replica is a replica with the settings of one test.
type replica struct {
	c    *connections
	base string
	log  *logBuffer
}

// logBuffer is the log of a running process.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

var serving = regexp.MustCompile(`msg=serving .*addr=(\S+)`)

// start starts a replica with the right settings, except those in set.
func (c *connections) start(t *testing.T, set map[string]string) *replica {
	t.Helper()
	dir := t.TempDir()
	secret := func(name, text string) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text+"\n"), 0o600))
		return path
	}
	all := map[string]string{
		"PATH": os.Getenv("PATH"), "HOME": dir, "ADDR": "127.0.0.1:0", "LAB": "true", "ZK_SESSION": "3s",
		"LAB_TOKEN_FILE": secret("token", tokenSecret),
		"MYSQL_DSN_FILE": secret("dsn", c.dsn("", "127.0.0.1")), "MYSQL_CA_FILE": c.files.CA,
		"REDIS_URL_FILE": secret("redis", "redis://:"+redisSecret+"@127.0.0.1:1/0"), "REDLOCK_URLS": "redis://:" + redisSecret + "@127.0.0.1:1/0",
		"ZK_SERVERS": c.rig.Addresses().ZookeeperTLS[0] + "/app", "ZK_AUTH_FILE": secret("zk", "oversell:"+zkSecret),
		"ZK_CA_FILE": c.files.CA, "ZK_CERT_FILE": c.clientCert, "ZK_KEY_FILE": c.key,
		"ETCD_ENDPOINTS": c.rig.Addresses().Etcd[0], "ETCD_AUTH_FILE": secret("etcd", "oversell:"+etcdSecret), "ETCD_CA_FILE": c.files.CA,
	}
	for name, value := range set {
		delete(all, name+"_FILE")
		all[name] = value
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), built(), "serve")
	for name, value := range all {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	r := &replica{c: c, log: &logBuffer{}}
	cmd.Stdout, cmd.Stderr = r.log, r.log
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		r.see(r.log.String())
	})
	rigtest.Eventually(t, "the replica serves", func() (bool, string) {
		text := r.log.String()
		if m := serving.FindStringSubmatch(text); m != nil {
			r.base = "http://" + m[1]
		}
		return r.base != "", text
	})
	return r
}

// sell sends a sale of one statement. A connection with TLS that fails has surely taken nothing: 503.
func (r *replica) sell(t *testing.T, want int) {
	t.Helper()
	text := r.get(t, http.MethodGet, "/check/lock?strategy=atomic")
	var answer struct{ Status int } // only a problem has one
	must(t, json.Unmarshal([]byte(text), &answer))
	if got := max(answer.Status, http.StatusOK); got != want {
		t.Errorf("the sale is answered with %d, want %d: %s", got, want, text)
	}
}

func (r *replica) see(text string) {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	_, _ = r.c.seen.WriteString(text)
}

func (r *replica) get(t *testing.T, method, path string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, r.base+path, nil)
	must(t, err)
	request.Header.Set("X-Lab-Token", tokenSecret)
	answer, err := http.DefaultClient.Do(request)
	must(t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	must(t, err)
	r.see(string(text))
	return string(text)
}

// await waits until /readyz and the log have these sentences, or "ok".
func (r *replica) await(t *testing.T, want map[string]string) {
	t.Helper()
	var answer struct{ Backends map[string]string }
	rigtest.Eventually(t, "/readyz has the sentences", func() (bool, string) {
		text := r.get(t, http.MethodGet, "/readyz")
		if err := json.Unmarshal([]byte(text), &answer); err != nil {
			return false, err.Error()
		}
		for backend, sentence := range want {
			if !strings.HasPrefix(answer.Backends[backend], sentence) {
				return false, backend + ": " + answer.Backends[backend] + ", want " + sentence
			}
		}
		return true, ""
	})
	for _, backend := range slices.Sorted(maps.Keys(want)) {
		t.Logf("%s: %s", backend, answer.Backends[backend])
		if want[backend] == "ok" {
			continue
		}
		line := `msg="cannot use ` + backend + `" replica=`
		rigtest.Eventually(t, "the log has the sentence", func() (bool, string) {
			text := r.log.String()
			for l := range strings.Lines(text) {
				if strings.Contains(l, line) && strings.Contains(l, want[backend]) {
					return true, ""
				}
			}
			return false, text
		})
	}
	// One strategy of each backend, for what its answers say.
	for _, strategy := range []string{"redis", "zk", "etcd", "for-update"} {
		r.get(t, http.MethodGet, "/check/lock?wait=0s&strategy="+strategy)
	}
}

// authority issues certificates. All of them have the same key.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
	leaf *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	leaf, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of a test"},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(48 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	must(t, err)
	return authority{cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), leaf}
}

// issue returns a certificate for 127.0.0.1, after change has changed it.
func (a authority) issue(t *testing.T, change func(*x509.Certificate)) []byte {
	t.Helper()
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "a server or a replica"},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
	}
	change(cert)
	der, err := x509.CreateCertificate(rand.Reader, cert, a.cert, a.leaf.Public(), a.key)
	must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func (a authority) keyPEM(t *testing.T) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(a.leaf)
	must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}
