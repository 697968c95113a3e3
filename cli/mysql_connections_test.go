package cli_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"database/sql"
	"encoding/pem"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

// TestCachingSHA2 connects replicas as a user with the plugin caching_sha2_password, which is the
// default of MySQL 8 and 9. MariaDB does not have it. The server stores the hash of a password after
// the first login: until then, a login needs TLS or the public key of the server.
func TestCachingSHA2(t *testing.T) {
	if os.Getenv("OVERSELL_MYSQL") == "" {
		t.Skip("make test-mysql runs it: it needs MySQL 8 or newer")
	}
	c := newConnections(t)
	admin, err := sql.Open("mysql", c.rig.Addresses().MySQL)
	must(t, err)
	defer func() { _ = admin.Close() }()
	var create, serverKey string
	must(t, admin.QueryRowContext(t.Context(), "SHOW CREATE USER CURRENT_USER()").Scan(&create))
	if !strings.Contains(create, "caching_sha2_password") {
		t.Fatalf("the lab's user has another plugin: %s", create)
	}
	must(t, admin.QueryRowContext(t.Context(), "SHOW STATUS LIKE 'Caching_sha2_password_rsa_public_key'").Scan(new(string), &serverKey))

	const refused = "the server refused the user: check the user and the password in MYSQL_DSN, and MYSQL_PUBLIC_KEY if it is set."
	for _, test := range []struct {
		name          string
		tls, cached   bool // cached: the server has the hash of the password
		password, key string
		want          string
	}{
		{"TLS", true, false, "", "", "ok"},
		{"no TLS", false, false, "", "", "ok"},
		{"the key of the server", false, false, "", serverKey, "ok"},
		{"another key", false, false, "", otherKey(t), refused},
		{"another key, after a login", false, true, "", otherKey(t), "ok"},
		{"a wrong password with TLS", true, false, wrongSecret, "", refused},
		{"a wrong password without TLS", false, false, wrongSecret, "", refused},
		{"a wrong password, after a login", false, true, wrongSecret, "", refused},
	} {
		t.Run(test.name, func(t *testing.T) {
			forgetHash(t, admin, c.rig)
			if test.cached {
				logIn(t, c.rig.Addresses().MySQL)
			}
			set := map[string]string{"MYSQL_DSN": c.dsn(test.password, "127.0.0.1"), "MYSQL_PUBLIC_KEY": test.key}
			if !test.tls {
				set["MYSQL_DSN"] = strings.Replace(set["MYSQL_DSN"], "tls=true", "tls=false", 1)
				set["MYSQL_CA_FILE"] = ""
			}
			c.start(t, set).await(t, map[string]string{"mysql": test.want})
		})
	}
	c.checkSecrets(t)
}

// forgetHash sets the user's password again, so the server deletes the stored hash of the password.
func forgetHash(t *testing.T, db *sql.DB, r *rig.Rig) {
	t.Helper()
	cfg, err := mysql.ParseDSN(r.Addresses().MySQL)
	must(t, err)
	_, err = db.ExecContext(t.Context(), "ALTER USER CURRENT_USER() IDENTIFIED BY '"+cfg.Passwd+"'") // of letters and digits
	must(t, err)
}

// logIn makes the server store the hash of the password.
func logIn(t *testing.T, dsn string) {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	must(t, err)
	defer func() { _ = db.Close() }()
	must(t, db.PingContext(t.Context()))
}

// otherKey returns a public key that does not belong to the server.
func otherKey(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	must(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// TestMySQLProxy sells through a proxy before the database, and then without a database behind it.
func TestMySQLProxy(t *testing.T) {
	rigtest.Nightly(t, "TestConnections of ./cli")
	t.Parallel()
	lab := rigtest.Start(t, rig.Config{MySQL: true, Replicas: 1, Proxied: true, Binary: built(), Token: token})
	proxy, err := lab.Link("replica-1", "mysql")
	must(t, err)
	replica, err := lab.Server("replica-1")
	must(t, err)
	database, err := lab.Server("mysql")
	must(t, err)
	base := lab.Addresses().Target

	const noDatabase = "the server, or a proxy before it, closed the connection: check that the server is ready, that the proxy reaches it, and that the port expects TLS if and only if this replica uses TLS ("
	awaitMySQL(t, base, "ok")
	sellThrough(t, base)
	must(t, proxy.SetUpstream("127.0.0.1:1"))
	awaitMySQL(t, base, noDatabase)
	if r := ask(t, http.MethodGet, base, checkLock("atomic")); r.HTTP != http.StatusServiceUnavailable || r.Backend != "mysql" {
		t.Errorf("a sale without a database: %+v, want 503 and the backend mysql", r)
	}
	must(t, replica.Stop(t.Context()))
	must(t, replica.Start(t.Context()))
	awaitMySQL(t, base, noDatabase)
	rigtest.Eventually(t, "the log has the sentence", func() (bool, string) {
		log := read(t, replica.Log())
		return strings.Contains(log, `msg="cannot use mysql" replica=replica-1 error="`+noDatabase), log
	})
	must(t, proxy.SetUpstream(database.Addr()))
	awaitMySQL(t, base, "ok")
	sellThrough(t, base)

	cfg, err := mysql.ParseDSN(lab.Addresses().MySQL)
	must(t, err)
	if log := read(t, replica.Log()); strings.Contains(log, cfg.Passwd) {
		t.Errorf("the log shows the password:\n%s", log)
	}
}

// awaitMySQL waits until /readyz says this about MySQL.
func awaitMySQL(t *testing.T, base, want string) {
	t.Helper()
	rigtest.Eventually(t, "/readyz says "+want, func() (bool, string) {
		now := readiness(t, base)["mysql"]
		return strings.HasPrefix(now, want), now
	})
}

// sellThrough sells with a statement, a transaction, a lock of the session and a lock in a table.
func sellThrough(t *testing.T, base string) {
	t.Helper()
	ask(t, http.MethodPut, base, "/stock/1?count=10")
	for _, strategy := range []string{"atomic", "for-update", "get-lock", "db-row"} {
		if r := ask(t, http.MethodGet, base, checkLock(strategy)); r.Outcome != "sold" {
			t.Errorf("%s: %+v", strategy, r)
		}
	}
}
