package cli

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caarlos0/env/v11"
	"github.com/go-sql-driver/mysql"

	"oversell/lab/rig"
	"oversell/trial"
)

// TestSettingsFromFiles checks that each variable may come from a file, and what a wrong one says.
func TestSettingsFromFiles(t *testing.T) {
	const secret = "pa55-from-a-file"
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file, empty := write("secret", "\uFEFF"+secret+"\r\n"), write("empty", "\n")
	wide := write("wide", "\xFF\xFEp\x00a\x00")

	for variable, read := range map[string]func(settings) string{
		"LAB_TOKEN":        func(s settings) string { return s.Token },
		"MYSQL_DSN":        func(s settings) string { return s.MySQL },
		"MYSQL_READS":      func(s settings) string { return s.Reads },
		"MYSQL_PUBLIC_KEY": func(s settings) string { return s.MySQLKey },
		"MYSQL_KEY":        func(s settings) string { return s.MySQLCerts.Key },
		"REDIS_URL":        func(s settings) string { return s.Redis },
		"REDLOCK_URLS":     func(s settings) string { return strings.Join(s.Redlock, ",") },
		"ZK_AUTH":          func(s settings) string { return s.ZKAuth },
		"ZK_KEY":           func(s settings) string { return s.ZKCerts.Key },
		"ETCD_AUTH":        func(s settings) string { return s.EtcdAuth },
		"ETCD_CA":          func(s settings) string { return s.EtcdCerts.CA },
	} {
		var s settings
		if err := readVariables(&s, map[string]string{variable + "_FILE": file}); err != nil || read(s) != secret {
			t.Errorf("%s_FILE: %q, %v, want the text of the file without the line's end", variable, read(s), err)
		}
		for _, wrong := range []struct {
			set  map[string]string
			says string
		}{
			{map[string]string{variable: secret, variable + "_FILE": file}, variable + " and " + variable + "_FILE are both set: unset one of them"},
			{map[string]string{variable + "_FILE": filepath.Join(dir, "none")}, variable + "_FILE: cannot read the file: open " + filepath.Join(dir, "none")},
			{map[string]string{variable + "_FILE": dir}, variable + "_FILE: cannot read the file: read " + dir},
			{map[string]string{variable + "_FILE": wide}, variable + "_FILE: the file " + wide + " is in UTF-16: save it as UTF-8"},
			{map[string]string{variable + "_FILE": empty}, variable + "_FILE: the file " + empty + " is empty"},
			{map[string]string{variable + "_FILE": "-----BEGIN\n" + secret}, variable + "_FILE has several lines: it must be the path of a file"},
		} {
			err := readVariables(new(settings), wrong.set)
			if err == nil || !strings.Contains(err.Error(), wrong.says) {
				t.Errorf("%v: %v, want %q", wrong.set, err, wrong.says)
			} else if strings.Contains(err.Error(), secret) {
				t.Errorf("the error shows the secret: %v", err)
			}
		}
	}

	var s settings
	if err := readVariables(&s, map[string]string{"LAB_TOKEN": secret, "LAB_TOKEN_FILE": ""}); err != nil || s.Token != secret {
		t.Errorf("an empty LAB_TOKEN_FILE: %q, %v, want the variable", s.Token, err)
	}
}

// TestWrongSettingsShowNoSecret starts a replica with settings that cannot be read.
func TestWrongSettingsShowNoSecret(t *testing.T) {
	const secret = "pa55-in-a-variable"
	for _, test := range []struct{ name, value, says string }{
		{"MYSQL_DSN", "root:" + secret + "/oversell", "mysql address: it must look like user:password@tcp(host:port)/database?tls=true"},
		{"MYSQL_DSN", "root:" + secret + "@tcp(127.0.0.1:3306", "mysql address: invalid DSN"},
		{"MYSQL_DSN", "root:" + secret + "@tcp(127.0.0.1:3306)/o?tls=" + secret, "mysql address: it must look like"},
		{"MYSQL_READS", "root:" + secret + "/oversell", "mysql address: it must look like"},
		{"MYSQL_CA", secret, "MYSQL_CA has no certificate in PEM format; to name a file, set MYSQL_CA_FILE"},
		{"MYSQL_PUBLIC_KEY", secret, "MYSQL_PUBLIC_KEY: has no RSA public key in PEM format"},
		{"ZK_AUTH", secret, "ZK_AUTH must be user:password"},
		{"ZK_KEY", secret, "ZK_CERT and ZK_KEY need each other"},
		{"ZK_SERVERS", "127.0.0.1:1/app,127.0.0.1:2", "127.0.0.1:1/app: the path must stand behind the last server"},
		{"ZK_SERVERS", "127.0.0.1:1, ,127.0.0.1:2", "--zookeeper has an empty address between its commas"},
		{"LAB_TOKEN", "课堂" + secret, "the token must have only English letters, digits and signs"},
		{"ETCD_AUTH", secret, "ETCD_AUTH must be user:password"},
		{"ETCD_CERT", secret, "ETCD_CERT and ETCD_KEY need each other"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv(test.name, test.value)
			status, out, message := execute(t, "serve", "--addr", "127.0.0.1:0")
			if status != 2 || !strings.Contains(message, test.says) {
				t.Errorf("status %d, %q, want 2 and %q", status, message, test.says)
			}
			if strings.Contains(out+message, secret) {
				t.Errorf("it shows the secret: %s", out+message)
			}
			if _, help, _ := execute(t, "serve", "--help"); strings.Contains(help, secret) || !strings.Contains(help, "127.0.0.1:2181") {
				t.Errorf("the help shows the value of %s, or no default:\n%s", test.name, help)
			}
		})
	}
}

// TestTokenFromAFile checks that the commands that send the lab's token read LAB_TOKEN_FILE, too.
func TestTokenFromAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	t.Setenv("LAB_TOKEN_FILE", path)
	for _, args := range [][]string{{"dash"}, {"lab"}, {"run", "redis"}, {"run", "coupon"}} {
		status, _, message := execute(t, args...)
		if want := ": environment: LAB_TOKEN_FILE: cannot read the file: open " + path; status != 2 || !strings.Contains(message, want) {
			t.Errorf("%v: status %d, %q, want 2 and %q", args, status, message, want)
		}
	}
	if err := os.WriteFile(path, []byte("t0ken\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if token, err := labToken(); token != "t0ken" || err != nil {
		t.Errorf("%q, %v", token, err)
	}
}

// TestMySQLCauses checks errors of a MySQL 9 that MariaDB cannot cause, copied from one, and of a Galera cluster.
func TestMySQLCauses(t *testing.T) {
	for _, test := range []struct {
		err  error
		says string
	}{
		{errors.New("unexpected resp from server for caching_sha2_password, perform full authentication"), "the user's plugin, caching_sha2_password or sha256_password, needs TLS or an RSA key of the server, and there is neither: add tls=true to MYSQL_DSN, or let the server create its keys ("},
		{&mysql.MySQLError{Number: 3159, Message: "Connections using insecure transport are prohibited while --require_secure_transport=ON."}, "the server accepts only connections with TLS: add tls=true to MYSQL_DSN ("},
		{mysql.ErrNoTLS, "the server does not use TLS at this port: enable TLS there, or do not use it in MYSQL_DSN ("},
		{&mysql.MySQLError{Number: 1047, Message: "WSREP has not yet prepared node for application use"}, "this node of the Galera cluster lacks the majority or some data: start more nodes, wait, or let a proxy choose another node ("},
		{errors.New("another error"), "another error"},
	} {
		if got := explain("mysql", test.err); !strings.HasPrefix(got.Error(), test.says) || !errors.Is(got, test.err) {
			t.Errorf("%v: %q, want %q", test.err, got, test.says)
		}
	}
}

// TestListsWithBlanks checks that a blank after a comma does not become a part of an address.
func TestListsWithBlanks(t *testing.T) {
	s := settings{Redlock: []string{"redis://a:1", " redis://b:2"}, ZooKeeper: []string{"a:1 ", " b:2"}, Etcd: []string{"a:1", "\tb:2"}, Conns: 2, Lease: time.Second, ZKSession: time.Second}
	if err := s.check(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(slices.Concat(s.Redlock, s.ZooKeeper, s.Etcd), "|"); got != "redis://a:1|redis://b:2|a:1|b:2|a:1|b:2" {
		t.Error(got)
	}
}

// TestTokenInLink checks that the link of the lab gives the page the token, with any signs.
func TestTokenInLink(t *testing.T) {
	const token = "q+7/Zk==&a#b%41"
	text, err := labFlags{}.readyText(rig.Addresses{Target: "http://127.0.0.1:8080", Token: token}, "logs", rig.Ports{})
	if err != nil {
		t.Fatal(err)
	}
	_, link, _ := strings.Cut(text, "/#")
	link, _, _ = strings.Cut(link, "\n")
	values, err := url.ParseQuery(link) // as URLSearchParams in the page does
	if err != nil || values.Get("token") != token {
		t.Errorf("%q, %v in %s", values.Get("token"), err, link)
	}
}

// TestProgramEnvironment checks that the program of a lock gets no setting of a replica.
func TestProgramEnvironment(t *testing.T) {
	params, err := env.GetFieldParams(new(settings))
	if err != nil || len(params) < 20 {
		t.Fatalf("%d settings: %v", len(params), err)
	}
	for _, p := range params {
		if p.Key != "" {
			t.Setenv(p.Key, "x")
			t.Setenv(p.Key+"_FILE", "x")
		}
	}
	t.Setenv("PYTHONPATH", "x")
	passed := trial.Environment()
	for _, p := range params {
		if p.Key != "" && (slices.Contains(passed, p.Key+"=x") || slices.Contains(passed, p.Key+"_FILE=x")) {
			t.Errorf("the program of a lock gets %s", p.Key)
		}
	}
	if !slices.Contains(passed, "PYTHONPATH=x") {
		t.Error("the program of a lock does not get PYTHONPATH")
	}
}
