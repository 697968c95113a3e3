package cli_test

import (
	"bytes"
	"fmt"
	"go/parser"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"oversell/lab/backend"
	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

// TestStudentsSession types the tutorial's lines into the servers' own clients, as a student does beside the text.
func TestStudentsSession(t *testing.T) {
	t.Parallel()
	lab := studentsLab(t)
	t.Run("mysql", lab.twoSessions)
	t.Run("redis-cli", lab.redisCLI)
	t.Run("zkCli", lab.zkCli)
	t.Run("settings", lab.settings)
	if count := ask(t, http.MethodGet, lab.addrs.Target, "/stock/1").Count; count != 5000 {
		t.Errorf("the service has %d items: the student's table is not in a database of its own", count)
	}
}

// ownLab is a running `oversell lab`.
type ownLab struct {
	addrs rig.Addresses
	file  string // of --json
}

// studentsLab starts a lab with --ports fixed. If another program of this machine has one of the ports, as on a
// developer's machine with MySQL, it checks that the lab names it, and starts a lab on free ports.
func studentsLab(t *testing.T) ownLab {
	t.Helper()
	lab, message := startOwnLab(t, "--ports", "fixed", "--open", "--login", "root:root")
	if message != "" {
		if !regexp.MustCompile(`port \d+ \([a-z0-9-]+\) is in use by .+\n(.*\n)*End these programs`).MatchString(message) {
			t.Fatalf("the lab did not start: %s", message)
		}
		t.Log(message)
		if lab, message = startOwnLab(t, "--open", "--login", "root:root"); message != "" {
			t.Fatal(message)
		}
		return lab
	}
	for server, port := range map[string]string{
		lab.addrs.MySQL: "3306", lab.addrs.Redis[0]: "6379", lab.addrs.Redis[4]: "6383", lab.addrs.Zookeeper[0]: "2181", lab.addrs.Etcd[0]: "2379",
	} {
		if !strings.Contains(server, "127.0.0.1:"+port) {
			t.Errorf("%s is not at port %s", server, port)
		}
	}
	_, message = startOwnLab(t, "--ports", "fixed")
	for _, port := range []string{"port 3306 (mysql) is in use by ", "port 6381 (redis-3) is in use by ", "port 2181 (zookeeper) is in use by ", "port 2379 (etcd) is in use by "} {
		if !strings.Contains(message, port) {
			t.Errorf("a second lab: no %q in %s", port, message)
		}
	}
	return lab
}

// startOwnLab starts a lab with a temporary folder of its own, which ends with the test. If it does not start,
// startOwnLab returns what it printed.
func startOwnLab(t *testing.T, flags ...string) (lab ownLab, message string) {
	t.Helper()
	lab.file = filepath.Join(t.TempDir(), "lab.json")
	var errOut bytes.Buffer
	cmd := exec.CommandContext(t.Context(), built(), append([]string{"lab", "--replicas", "1", "--json", lab.file}, flags...)...)
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	cmd.Stderr = &errOut
	must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	rigtest.Eventually(t, "the lab starts, or ends", func() (bool, string) {
		select {
		case err := <-ended:
			ended <- err
			message = errOut.String()
			return true, ""
		default:
		}
		_, err := os.Stat(lab.file)
		return err == nil, "it starts"
	})
	if message != "" {
		return lab, message
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
	})
	var err error
	lab.addrs, err = rig.ReadAddresses(lab.file)
	must(t, err)
	return lab, ""
}

// terminal is a client that runs, with what it has printed.
type terminal struct {
	in      io.WriteCloser
	reading sync.Mutex
	out     bytes.Buffer
	read    int // how much of out an earlier answer had
}

func (c *terminal) Write(text []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	return c.out.Write(text)
}

// open starts a client, with the lines of a student as its input.
func open(t *testing.T, program string, args ...string) *terminal {
	t.Helper()
	c := &terminal{}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stdout, cmd.Stderr = c, c
	in, err := cmd.StdinPipe()
	must(t, err)
	must(t, cmd.Start())
	c.in = in
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait() // its status is that of the last line
	})
	return c
}

// types sends a line, and awaits an answer that matches the expression. An empty one means no wait.
func (c *terminal) types(t *testing.T, line, answer string) {
	t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		t.Fatal(err)
	}
	if answer != "" {
		c.answers(t, line, answer)
	}
}

func (c *terminal) answers(t *testing.T, line, answer string) {
	t.Helper()
	expected := regexp.MustCompile(answer)
	rigtest.Eventually(t, "the answer "+answer+" to "+line, func() (bool, string) {
		c.reading.Lock()
		defer c.reading.Unlock()
		all := c.out.String()
		at := expected.FindStringIndex(all[c.read:])
		if at == nil {
			return false, all[c.read:]
		}
		c.read += at[1]
		return true, ""
	})
}

// The tables of the tutorial (1.1 and 2), and that of the second text, as printed.
const (
	stockTable = "CREATE TABLE `db_stock` (  \n  `id` bigint(20) NOT NULL AUTO_INCREMENT,  \n  `product_code` varchar(255) DEFAULT NULL COMMENT '商品编号',  \n  `stock_code` varchar(255) DEFAULT NULL COMMENT '仓库编号',  \n  `count` int(11) DEFAULT NULL COMMENT '库存量',  \n  PRIMARY KEY (`id`)  \n) ENGINE=InnoDB AUTO_INCREMENT=2 DEFAULT CHARSET=utf8;"
	lockTable  = "CREATE TABLE `db_lock` (\n  `id` bigint(20) NOT NULL AUTO_INCREMENT,\n  `lock_name` varchar(50) NOT NULL COMMENT '锁名',\n  `class_name` varchar(100) DEFAULT NULL COMMENT '类名',\n  `method_name` varchar(50) DEFAULT NULL COMMENT '方法名',\n  `server_name` varchar(50) DEFAULT NULL COMMENT '服务器ip',\n  `thread_name` varchar(50) DEFAULT NULL COMMENT '线程名',\n  `create_time` timestamp NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP COMMENT '获取锁时间',\n  `desc` varchar(100) DEFAULT NULL COMMENT '描述',\n  PRIMARY KEY (`id`),\n  UNIQUE KEY `idx_unique` (`lock_name`)\n) ENGINE=InnoDB AUTO_INCREMENT=1332899824461455363 DEFAULT CHARSET=utf8;"
	upperTable = "CREATE TABLE `LOCK` ( \n`ID` int PRIMARY KEY NOT NULL AUTO_INCREMENT,  \n`METHODNAME` varchar(64) NOT NULL DEFAULT '',\n`DESCRIPTION` varchar(1024) NOT NULL DEFAULT '',  \n`TIME` timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,  \nUNIQUE KEY `UNIQUEMETHODNAME` (`METHODNAME`) USING BTREE ) ENGINE=InnoDB DEFAULT CHARSET=utf8;"
)

// twoSessions makes the tables, waits for a row lock in a second session, and locks by a unique name.
func (l ownLab) twoSessions(t *testing.T) {
	program := "mysql"
	if _, err := exec.LookPath(program); err != nil {
		program = "mariadb"
	}
	// Batch mode prints what a terminal would show only with -vvv, and goes on after an error only with -f.
	args := []string{"-h", "127.0.0.1", "-P", portIn(l.addrs.MySQL), "-u", "root", "-proot", "-n", "-f", "-vvv"}
	const ok = "Query OK"
	a := open(t, program, args...)
	a.types(t, "create database test;", ok)
	a.types(t, "use test;", "")
	a.types(t, "select 1 into outfile '/tmp/1';", "ERROR (1045|1227) ") // a root with few rights: not that of the server
	a.types(t, stockTable, ok)
	a.types(t, "insert into db_stock values (1, '1001', '001', 5000);", ok+", 1 row")
	a.types(t, "alter table db_stock add version int(11) default 0;", ok)
	a.types(t, "update db_stock set stock = stock - 1 where id = 1;", "ERROR 1054 .*'stock'") // so it is printed, without such a column

	b := open(t, program, append(args, "test")...)
	a.types(t, "begin;", ok)
	a.types(t, "select * from db_stock where id = 1 for update;", `5000\s*\|\s*0`)
	b.types(t, "begin;", ok)
	b.types(t, "select * from db_stock where id = 1 for update;", "")
	rigtest.Eventually(t, "the second session waits", func() (bool, string) {
		time.Sleep(200 * time.Millisecond) // InnoDB fills the table again only if nobody has read it for 0.1 s
		waiting, err := backend.MySQLValue(t.Context(), l.addrs.MySQL, "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'")
		return waiting == "1", fmt.Sprint(waiting, err)
	})
	a.types(t, "update db_stock set count = count - 1 where id = 1;", ok+", 1 row")
	a.types(t, "commit;", ok)
	b.answers(t, "select ... for update", `4999\s*\|\s*0`)
	b.types(t, "update db_stock set count = 4998, version = version + 1 where id = 1 and version = 0;", ok+", 1 row")
	b.types(t, "commit;", ok)
	a.types(t, "update db_stock set count = 4998, version = version + 1 where id = 1 and version = 0;", ok+", 0 rows")

	a.types(t, lockTable, ok)
	insert := "insert into db_lock (lock_name, class_name) values ('lock', 'StockService');"
	a.types(t, insert, ok+", 1 row")
	b.types(t, insert, "ERROR 1062 .*Duplicate entry 'lock'")
	a.types(t, "delete from db_lock where lock_name = 'lock';", ok+", 1 row")
	b.types(t, insert, ok+", 1 row")

	a.types(t, upperTable, ok)
	a.types(t, "insert into LOCK(METHODNAME,DESCRIPTION) values ('getLock','获取锁') ;", "ERROR 1064 ")
	a.types(t, "insert into `LOCK`(METHODNAME,DESCRIPTION) values ('getLock','获取锁') ;", ok+", 1 row")
}

func (l ownLab) redisCLI(t *testing.T) {
	c := open(t, "redis-cli", "-p", portIn(l.addrs.Redis[0]), "-a", "root", "--no-raw")
	for _, line := range [][2]string{
		{"setnx lock xxx", `\(integer\) 1`},
		{"setnx lock xxx", `\(integer\) 0`},
		{"del lock", `\(integer\) 1`},
		{"set key value ex 3 nx", "OK"},
		{`EVAL "return redis.call('set', KEYS[1], ARGV[1])" 1 bbb 20`, "OK"},
		{"get bbb", `"20"`},
		{`EVAL "return redis.call('sets', KEYS[1], ARGV[1]), redis.call('set', KEYS[2], ARGV[2])" 2 bbb ccc 20 30`, "Unknown Redis command"},
		{`EVAL "return redis.pcall('sets', KEYS[1], ARGV[1]), redis.pcall('set', KEYS[2], ARGV[2])" 2 bbb ccc 20 30`, "Unknown Redis command"},
		{"get ccc", `"30"`},
		{`SCRIPT LOAD "return {KEYS[1],KEYS[2],ARGV[1],ARGV[2]}"`, `"a42059b356c875f0717db19a51f6aaca9ae659ea"`},
		{"EVALSHA a42059b356c875f0717db19a51f6aaca9ae659ea 2 aa bb cc dd", `1\) "aa"\n2\) "bb"\n3\) "cc"\n4\) "dd"`},
		{"SCRIPT FLUSH", "OK"},
		{"EVALSHA a42059b356c875f0717db19a51f6aaca9ae659ea 2 aa bb cc dd", "NOSCRIPT No matching script"},
	} {
		c.types(t, line[0], line[1])
	}
}

func (l ownLab) zkCli(t *testing.T) {
	client, err := rig.ZookeeperClient()
	must(t, err)
	c := open(t, client[0], append(client[1:], "-server", "localhost:"+portIn(l.addrs.Zookeeper[0]))...)
	c.types(t, `create /aa "test"`, "Created /aa")
	c.types(t, `create -s /bb "test"`, `Created /bb\d{10}`)
	c.types(t, `create -e /cc "test"`, "Created /cc")
	c.types(t, `create -e -s /dd "test"`, `Created /dd\d{10}`)
	c.types(t, "stat /", `ephemeralOwner = 0x0`)
	c.types(t, `create /test "xx"`, "Created /test")
	for i := range 5 {
		c.types(t, `create -e -s /test/lock- "xx"`, fmt.Sprintf(`Created /test/lock-000000000%d`, i))
	}
	c.types(t, "ls /test", `\[(lock-000000000\d(, )?){5}\]`)
	c.types(t, "quit", "")
}

// settings checks the addresses and the password in each part, and that the Go code can be compiled as such.
func (l ownLab) settings(t *testing.T) {
	parts := map[string][]string{
		"clients":  {"mysql -h 127.0.0.1 -P " + portIn(l.addrs.MySQL) + " -u root -proot", "redis-cli -p " + portIn(l.addrs.Redis[0]) + " -a root", "zkCli.sh -server " + l.addrs.Zookeeper[0] + "\n"},
		"spring":   {"url: jdbc:mysql://127.0.0.1:" + portIn(l.addrs.MySQL) + "/test?", `username: "root"`, `port: ` + portIn(l.addrs.Redis[0]) + "\n", `password: "root"`},
		"redisson": {`.setAddress("redis://127.0.0.1:` + portIn(l.addrs.Redis[0]) + `").setPassword("root")`},
		"curator":  {`.connectString("` + l.addrs.Zookeeper[0] + `")` + "\n        .retryPolicy("},
		"go":       {`"root:root@tcp(127.0.0.1:` + portIn(l.addrs.MySQL) + `)/test"`, `Password: "root"`, `[]string{"` + l.addrs.Zookeeper[0] + `"}`},
	}
	all, err := exec.CommandContext(t.Context(), built(), "settings", "--lab", l.file).Output()
	must(t, err)
	for part, texts := range parts {
		out, err := exec.CommandContext(t.Context(), built(), "settings", part, "--lab", l.file).Output()
		must(t, err)
		for _, want := range texts {
			if !strings.Contains(string(out), want) {
				t.Errorf("no %s in the settings for %s:\n%s", want, part, out)
			}
		}
		if !bytes.Contains(all, out) {
			t.Errorf("all settings are without those for %s:\n%s", part, all)
		}
		if part == "go" {
			if _, err := parser.ParseExpr("func() {\n" + string(out) + "}"); err != nil {
				t.Errorf("%v in\n%s", err, out)
			}
		}
	}
}

// portIn returns the port in the address of a server.
func portIn(address string) string {
	return regexp.MustCompile(`127\.0\.0\.1:(\d+)`).FindStringSubmatch(address)[1]
}
