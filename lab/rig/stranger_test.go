package rig_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/go-zookeeper/zk"
	"github.com/redis/go-redis/v9"
	etcd "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"oversell/lab/backend"
	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

// TestStranger: every user of the machine can connect to the servers, which run as the lab's
// owner. No user may log in without a password, or write a file with the password that the lab
// prints.
func TestStranger(t *testing.T) {
	r := rigtest.Start(t, rig.Config{MySQL: true, Redis: 1, Zookeeper: 1, Etcd: 1, Login: true, Replicas: 1, Token: "t0ken"})
	target := filepath.Join(t.TempDir(), "authorized_keys")
	at := r.Addresses()
	t.Run("mysql", func(t *testing.T) { strangerAtMySQL(t, at.MySQL, target) })
	t.Run("redis", func(t *testing.T) { strangerAtRedis(t, at.Redis[0], target) })
	t.Run("zookeeper and etcd", func(t *testing.T) {
		strangerAtZookeeper(t, at)
		strangerAtEtcd(t, at)
		for _, name := range []string{"zookeeper", "etcd"} {
			s := named(t, r, name)
			s.Kill()
			must(t, s.Start(t.Context()))
		}
		strangerAtZookeeper(t, at)
		strangerAtEtcd(t, at)
		must(t, r.AwaitReady(t.Context()))
		for _, strategy := range []string{"zk", "zk-mutex", "etcd"} {
			var sale struct{ Outcome, Detail string }
			if _, _, err := rigtest.Send(t.Context(), http.MethodPost, at.Target+"/check/lock?strategy="+strategy, "", &sale); err != nil || sale.Outcome != "sold" {
				t.Errorf("%s: a sale after the restart: %+v, %v", strategy, sale, err)
			}
		}
	})
}

func strangerAtZookeeper(t *testing.T, at rig.Addresses) {
	t.Helper()
	for login, allowed := range map[string]bool{"": false, "oversell:wrong": false, "super:" + at.Login: false, at.Login: true} {
		c, _, err := zk.Connect(at.Zookeeper, 10*time.Second, zk.WithLogInfo(false), zk.WithLogger(silence{}))
		must(t, err)
		if login != "" {
			must(t, c.AddAuth("digest", []byte(login))) // a wrong one is another user
		}
		for _, node := range []string{"/mine", "/zookeeper/mine", "/zookeeper/quota/mine"} {
			_, err := c.Create(node, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
			if (err == nil) != allowed || err != nil && !errors.Is(err, zk.ErrNoAuth) {
				t.Errorf("login %q: create %s: %v", login, node, err)
			}
		}
		if _, _, err := c.Children("/"); (err == nil) != allowed {
			t.Errorf("login %q: list /: %v", login, err)
		}
		c.Close()
	}
}

func strangerAtEtcd(t *testing.T, at rig.Addresses) {
	t.Helper()
	user, password, _ := strings.Cut(at.Login, ":")
	for _, login := range [][2]string{{"", ""}, {user, "wrong"}, {"root", ""}, {"root", password}, {user, password}} {
		c, err := etcd.New(etcd.Config{Endpoints: at.Etcd, DialTimeout: time.Minute, Username: login[0], Password: login[1], Logger: zap.NewNop()})
		if err == nil {
			_, err = c.Put(t.Context(), "mine", "")
			_ = c.Close()
		}
		if allowed := login[0] == user && login[1] == password; (err == nil) != allowed {
			t.Errorf("login %q: put: %v", login, err)
		}
	}
}

func strangerAtMySQL(t *testing.T, dsn, target string) {
	t.Helper()
	class, err := mysql.ParseDSN(dsn)
	must(t, err)
	mysqlDo := func(user *mysql.Config, statement string) error {
		return backend.ExecuteMySQL(t.Context(), user.FormatDSN(), statement)
	}
	for _, user := range []string{"root", "oversell", class.User, "mysql", "mariadb.sys", ""} {
		stranger := *class
		stranger.User, stranger.Passwd, stranger.DBName = user, "", ""
		if err := mysqlDo(&stranger, "SELECT 1"); err == nil {
			t.Errorf("%q is let in without a password", user)
		}
	}
	for _, statement := range []string{
		"SET GLOBAL general_log_file = '" + target + "'",
		"SET GLOBAL slow_query_log_file = '" + target + "'",
		"SET GLOBAL secure_file_priv = ''",
		"SET GLOBAL general_log = ON",
		"SELECT 'ssh-ed25519' INTO OUTFILE '" + target + "'",
		"SELECT 'ssh-ed25519' INTO DUMPFILE '" + target + "'",
		"SELECT * FROM mysql.user",
		"CREATE TABLESPACE elsewhere ADD DATAFILE '" + target + ".ibd' ENGINE=InnoDB",
		"INSTALL SONAME 'ha_connect'",
		"INSTALL PLUGIN audit SONAME 'server_audit.so'",
		"CREATE FUNCTION run RETURNS INTEGER SONAME 'udf.so'",
		"GRANT FILE ON *.* TO CURRENT_USER()",
		"LOAD DATA INFILE '/etc/hostname' INTO TABLE mine",
	} {
		must(t, mysqlDo(class, "CREATE TABLE IF NOT EXISTS mine (line VARCHAR(200))"))
		if err := mysqlDo(class, statement); err == nil {
			t.Errorf("the class's user may %s", statement)
		}
	}
	// Some servers reject DATA DIRECTORY and others ignore it, so the test ignores the errors.
	for _, statement := range []string{
		"CREATE TABLE elsewhere (id INT) DATA DIRECTORY = '" + filepath.Dir(target) + "'",
		"CREATE TABLE parted (id INT) PARTITION BY HASH (id) (PARTITION p DATA DIRECTORY = '" + filepath.Dir(target) + "')",
		"CREATE TABLE older (id INT) ENGINE=MyISAM DATA DIRECTORY = '" + filepath.Dir(target) + "'",
		"CREATE TABLE newer (id INT) ENGINE=Aria DATA DIRECTORY = '" + filepath.Dir(target) + "'",
	} {
		_ = mysqlDo(class, statement)
	}
	noFiles(t, target)
	// The user can execute the statements that the service needs.
	must(t, mysqlDo(class, "INSERT INTO mine VALUES ('商品')"))
	must(t, mysqlDo(class, "SELECT * FROM mine FOR UPDATE"))
	must(t, mysqlDo(class, "SELECT GET_LOCK('a', 0)"))
}

func strangerAtRedis(t *testing.T, url, target string) {
	t.Helper()
	class, err := redis.ParseURL(url)
	must(t, err)
	stranger := *class
	stranger.Username, stranger.Password = "", ""
	for _, command := range []string{"PING", "SET a b", "EVAL return 0", "REPLICAOF 127.0.0.1 1", "SHUTDOWN NOSAVE"} {
		if err := redisDo(t, &stranger, command); err == nil || !strings.Contains(err.Error(), "NOAUTH") {
			t.Errorf("without a password, %s: %v", command, err)
		}
	}
	for _, command := range []string{
		"CONFIG SET dir " + filepath.Dir(target), "CONFIG SET dbfilename " + filepath.Base(target), "CONFIG REWRITE",
		"CONFIG SET requirepass x", "MODULE LOAD " + target, "DEBUG RELOAD",
	} {
		if err := redisDo(t, class, command); err == nil || !strings.Contains(err.Error(), "unknown command") {
			t.Errorf("with the class's password, %s: %v", command, err)
		}
	}
	must(t, redisDo(t, class, "SET stock 1"))
	must(t, redisDo(t, class, "SAVE"))
	noFiles(t, target)
}

// noFiles fails the test if the folder of target has any file.
func noFiles(t *testing.T, target string) {
	t.Helper()
	if entries, err := os.ReadDir(filepath.Dir(target)); err != nil || len(entries) > 0 {
		t.Errorf("files were written: %v, %v", entries, err)
	}
}

func redisDo(t *testing.T, options *redis.Options, command string) error {
	t.Helper()
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	var args []any
	for _, word := range strings.Fields(command) {
		args = append(args, word)
	}
	return client.Do(t.Context(), args...).Err()
}

// TestSecrets: only the owner can read the folder. No secret is in a command line, which every
// user can read. Each lab has its own secrets.
func TestSecrets(t *testing.T) {
	cfg := everything()
	cfg.Login = true
	r := rigtest.Start(t, cfg)
	at := r.Addresses()
	class, err := mysql.ParseDSN(at.MySQL)
	must(t, err)
	options, err := redis.ParseURL(at.Redis[0])
	must(t, err)
	secrets := []string{class.Passwd, options.Password, at.Token}
	for _, secret := range secrets {
		if len(secret) < 5 {
			t.Fatalf("a secret is %q", secret)
		}
	}
	found, err := os.Stat(r.Dir())
	must(t, err)
	if found.Mode().Perm() != 0o700 {
		t.Errorf("the folder has mode %o", found.Mode().Perm())
	}
	for _, s := range r.Servers() {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", s.PID()))
		if os.IsNotExist(err) {
			t.Skip("this system has no /proc to read command lines from")
		}
		must(t, err)
		for _, secret := range secrets {
			if strings.Contains(string(line), secret) {
				t.Errorf("everybody can read a secret of %s: %s", s.Name(), strings.ReplaceAll(string(line), "\x00", " "))
			}
		}
	}
	// The folder's mode protects the files, but not copies of them. So no other user may have the
	// right to read a file with a password.
	must(t, filepath.WalkDir(r.Dir(), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path) //nolint:gosec // in the rig's folder
		if err != nil {
			return nil //nolint:nilerr // a socket, or gone
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 && (strings.Contains(string(text), class.Passwd) || strings.Contains(string(text), options.Password)) {
			t.Errorf("%s has a password and mode %o", path, info.Mode().Perm())
		}
		return nil
	}))
	if other := rigtest.Start(t, rig.Config{Redis: 1}).Addresses().Redis[0]; strings.Contains(other, options.Password) {
		t.Error("two labs have the same password")
	}
}

// TestGaleraName: a node needs only the name of a Galera cluster to join it, and can then write to
// all nodes. So the name must be a secret.
func TestGaleraName(t *testing.T) {
	rigtest.Nightly(t, "TestStranger of ./lab/rig")
	r := rigtest.Start(t, rig.Config{MySQL: true, Database: rig.Galera})
	for _, server := range []string{"mysql", "mysql-2"} {
		var name string
		must(t, node(t, r, server).QueryRowContext(t.Context(), "SELECT @@wsrep_cluster_name").Scan(&name))
		if len(name) < 20 || name == "my_wsrep_cluster" {
			t.Errorf("%s is in the cluster %q, which strangers can guess", server, name)
		}
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", named(t, r, server).PID()))
		if err == nil && strings.Contains(string(line), name) {
			t.Errorf("the command line of %s has the name: %s", server, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
}
