package cli_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/go-zookeeper/zk"
	"github.com/redis/go-redis/v9"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"oversell/lab/backend"
	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
)

// outage is a fault of one backend, which is in force from begin to end.
type outage struct {
	name       string
	begin, end func(*testing.T)
	ready      bool // /readyz stays ok
}

// TestEveryOutage tries each fault on each backend. Meanwhile each sale is answered, and the answer and /readyz name
// the backend with the cause. After the fault, the same replica sells again, and nothing is lost. It
// prints a table.
func TestEveryOutage(t *testing.T) {
	rigtest.Nightly(t, "TestOutages of ./locks/catalog, TestConnections of ./cli")
	t.Parallel()
	cfg := rig.FullLab("", token)
	cfg.Replicas, cfg.Nginx, cfg.Proxied, cfg.Clocks, cfg.Login = 1, false, true, true, true
	r := rigtest.Start(t, cfg)
	base := r.Addresses().Target
	for _, strategy := range []string{"atomic", "redis", "redlock", "zk", "etcd"} { // opens the connections
		if a := ask(t, http.MethodPost, base, checkLock(strategy)); a.HTTP != http.StatusOK {
			t.Fatalf("%s: %+v", strategy, a)
		}
	}
	const stock = 1000
	if a := ask(t, http.MethodPut, base, fmt.Sprintf("/stock/1?count=%d", stock)); a.HTTP != http.StatusOK {
		t.Fatalf("reset: %+v", a)
	}
	sold, unknown := 0, 0
	table := "backend | fault | a sale meanwhile | after | /readyz | first sale after the end\n"
	for _, b := range []struct {
		backend, strategy string
		servers           []string
		more              []outage
	}{
		{"mysql", "for-update", []string{"mysql"}, []outage{refuseMySQL(r), readOnlyMySQL(r)}},
		{"redis", "redis", []string{"redis-1"}, redisOutages(r, "redis-1")},
		{"redlock", "redlock", []string{"redis-2", "redis-3", "redis-4"}, redisOutages(r, "redis-2", "redis-3", "redis-4")},
		{"zookeeper", "zk", []string{"zookeeper"}, []outage{refuseZookeeper(r)}},
		{"etcd", "etcd", []string{"etcd"}, etcdOutages(r)},
	} {
		for _, o := range append(commonOutages(r, b.servers), b.more...) {
			sale := func() (reply, time.Duration) {
				ctx, cancel := context.WithTimeout(t.Context(), rigtest.Patience)
				defer cancel()
				began := time.Now()
				answer, err := send(ctx, http.MethodPost, base, checkLock(b.strategy)+"&wait=1s")
				if err != nil {
					t.Fatalf("%s, %s: %v", b.backend, o.name, err)
				}
				switch answer.HTTP {
				case http.StatusOK:
					sold++
				case http.StatusInternalServerError:
					unknown++
				}
				return answer, time.Since(began)
			}
			o.begin(t)
			meanwhile, took := sale()
			if meanwhile.HTTP != http.StatusOK && (meanwhile.Backend != b.backend || meanwhile.Detail == "") {
				t.Errorf("%s, %s: a sale: %+v", b.backend, o.name, meanwhile)
			}
			if took > time.Minute {
				t.Errorf("%s, %s: a sale was answered after %v", b.backend, o.name, took)
			}
			state := "ok"
			if !o.ready {
				rigtest.Eventually(t, b.backend+", "+o.name+": /readyz says so", func() (bool, string) {
					state = readiness(t, base)[b.backend]
					return state != "ok", state
				})
			}
			o.end(t)
			ended := time.Now()
			rigtest.Eventually(t, b.backend+", "+o.name+": sells again", func() (bool, string) {
				answer, _ := sale()
				return answer.HTTP == http.StatusOK, answer.Detail
			})
			after := time.Since(ended)
			rigtest.Eventually(t, b.backend+", "+o.name+": /readyz is ok again", func() (bool, string) {
				now := readiness(t, base)[b.backend]
				return now == "ok", now
			})
			table += fmt.Sprintf("%s | %s | %d %s: %s | %.1f s | %s | %.1f s\n", b.backend, o.name,
				meanwhile.HTTP, meanwhile.Outcome, meanwhile.Detail, took.Seconds(), state, after.Seconds())
		}
	}
	t.Log("\n" + table)
	if left := ask(t, http.MethodGet, base, "/stock/1").Count; left > stock-sold || left < stock-sold-unknown {
		t.Errorf("%d sold, %d perhaps, and %d of %d remain", sold, unknown, left, stock)
	}
}

// readiness returns what /readyz says of each backend.
func readiness(t *testing.T, base string) map[string]string {
	t.Helper()
	var text struct{ Backends map[string]string }
	_, _, err := rigtest.Send(t.Context(), http.MethodGet, base+"/readyz", "", &text)
	must(t, err)
	return text.Backends
}

// each returns a function that does the same to each of the named servers.
func each(r *rig.Rig, names []string, do func(*rig.Server) error) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		for _, name := range names {
			s, err := r.Server(name)
			must(t, err)
			must(t, do(s))
		}
	}
}

func commonOutages(r *rig.Rig, names []string) []outage {
	servers := func(do func(*rig.Server) error) func(*testing.T) { return each(r, names, do) }
	links := func(do func(*rig.Link) error) func(*testing.T) {
		return func(t *testing.T) {
			t.Helper()
			for _, name := range names {
				l, err := r.Link("replica-1", name)
				must(t, err)
				must(t, do(l))
			}
		}
	}
	return []outage{
		{name: "server stopped", begin: servers(func(s *rig.Server) error { return s.Stop(context.Background()) }), end: servers(func(s *rig.Server) error { return s.Start(context.Background()) })},
		{name: "server hangs", begin: servers((*rig.Server).Pause), end: servers((*rig.Server).Resume)},
		{name: "connection half open", begin: links((*rig.Link).Cut), end: links((*rig.Link).Restore)},
		{name: "a reply lost", begin: links((*rig.Link).LoseReplies), end: links((*rig.Link).Restore), ready: true},
	}
}

func redisOutages(r *rig.Rig, names ...string) []outage {
	send := func(command ...any) func(*testing.T) {
		return each(r, names, func(s *rig.Server) error {
			options, err := redis.ParseURL(s.RedisURL())
			if err != nil {
				return err
			}
			c := redis.NewClient(options)
			return errors.Join(c.Do(context.Background(), command...).Err(), c.Close())
		})
	}
	clock := func(offset time.Duration) func(*testing.T) {
		return each(r, names, func(s *rig.Server) error { return s.SetClock(offset) })
	}
	return []outage{
		{name: "refused by rights", begin: send("ACL", "SETUSER", "default", "-@write"), end: send("ACL", "SETUSER", "default", "+@all")},
		{name: "read-only", begin: send("REPLICAOF", "127.0.0.1", "1"), end: send("REPLICAOF", "NO", "ONE")},
		{name: "clock an hour ahead", begin: clock(time.Hour), end: clock(0), ready: true},
		{name: "clock an hour back", begin: clock(-time.Hour), end: clock(0), ready: true},
	}
}

// refuseMySQL changes the user's password and ends its connections.
func refuseMySQL(r *rig.Rig) outage {
	right, err := mysql.ParseDSN(r.Addresses().MySQL)
	wrong := right.Clone() // of a valid DSN
	wrong.Passwd = "another"
	change := func(from, to *mysql.Config) func(*testing.T) {
		return func(t *testing.T) {
			t.Helper()
			must(t, err)
			db, err := sql.Open("mysql", from.FormatDSN())
			must(t, err)
			_, err = db.ExecContext(t.Context(), "SET PASSWORD = PASSWORD('"+to.Passwd+"')") // MariaDB
			if err != nil {
				_, err = db.ExecContext(t.Context(), "SET PASSWORD = '"+to.Passwd+"'")
			}
			_, killed := backend.KillMySQLConnections(t.Context(), to.FormatDSN())
			must(t, errors.Join(err, db.Close(), killed))
		}
	}
	return outage{name: "refused by rights", begin: change(right, wrong), end: change(wrong, right)}
}

var administrator = regexp.MustCompile(`ALTER USER '(root)'@'localhost' IDENTIFIED BY '(\w+)'`)

// readOnlyMySQL makes the server reject every write. Only the administrator may do this, whose password is in a
// file of the server.
func readOnlyMySQL(r *rig.Rig) outage {
	set := func(value int) func(*testing.T) {
		return func(t *testing.T) {
			t.Helper()
			s, err := r.Server("mysql")
			must(t, err)
			started, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", s.PID()))
			must(t, err)
			_, rest, _ := strings.Cut(string(started), "--init-file=")
			file, _, _ := strings.Cut(rest, "\x00")
			text, err := os.ReadFile(file) //nolint:gosec // the lab's own file
			must(t, err)
			cfg, err := mysql.ParseDSN(r.Addresses().MySQL)
			must(t, err)
			found := administrator.FindStringSubmatch(string(text))
			cfg.User, cfg.Passwd = found[1], found[2]
			db, err := sql.Open("mysql", cfg.FormatDSN())
			must(t, err)
			_, err = db.ExecContext(t.Context(), fmt.Sprintf("SET GLOBAL read_only = %d", value))
			must(t, errors.Join(err, db.Close()))
		}
	}
	return outage{name: "read-only", begin: set(1), end: set(0)}
}

// refuseZookeeper leaves the replica's user with no right on the folder of the locks but to give it back.
func refuseZookeeper(r *rig.Rig) outage {
	set := func(rights int32) func(*testing.T) {
		return func(t *testing.T) {
			t.Helper()
			c, _, err := zk.Connect(r.Addresses().Zookeeper, 10*time.Second, zk.WithLogInfo(false))
			must(t, err)
			defer c.Close()
			must(t, c.AddAuth("digest", []byte(r.Addresses().Login)))
			user, password, _ := strings.Cut(r.Addresses().Login, ":")
			for _, node := range []string{"/oversell", "/oversell/zk", "/oversell/zk/stock:1"} {
				_, err = c.SetACL(node, zk.DigestACL(rights, user, password), -1)
				must(t, err)
			}
		}
	}
	return outage{name: "refused by rights", begin: set(zk.PermAdmin | zk.PermRead), end: set(zk.PermAll)}
}

func etcdOutages(r *rig.Rig) []outage {
	user, password, _ := strings.Cut(r.Addresses().Login, ":")
	as := func(name string, do func(context.Context, *clientv3.Client) error) func(*testing.T) {
		return func(t *testing.T) {
			t.Helper()
			c, err := clientv3.New(clientv3.Config{Endpoints: r.Addresses().Etcd, DialTimeout: time.Minute, Username: name, Password: password, Logger: zap.NewNop()})
			must(t, err)
			must(t, do(t.Context(), c))
			must(t, c.Close())
		}
	}
	alarm := func(action etcdserverpb.AlarmRequest_AlarmAction) func(*testing.T) {
		return as(user, func(ctx context.Context, c *clientv3.Client) error {
			_, err := etcdserverpb.NewMaintenanceClient(c.ActiveConnection()).Alarm(ctx, &etcdserverpb.AlarmRequest{Action: action, Alarm: etcdserverpb.AlarmType_NOSPACE})
			return err
		})
	}
	return []outage{
		{
			name: "refused by rights",
			begin: func(t *testing.T) {
				t.Helper()
				as(user, func(ctx context.Context, c *clientv3.Client) error { // a user who can give the right back
					if _, err := c.UserAdd(ctx, "another", password); err != nil {
						return err
					}
					_, err := c.UserGrantRole(ctx, "another", "root")
					return err
				})(t)
				as("another", func(ctx context.Context, c *clientv3.Client) error {
					_, err := c.UserRevokeRole(ctx, user, "root")
					return err
				})(t)
			},
			end: as("another", func(ctx context.Context, c *clientv3.Client) error {
				_, err := c.UserGrantRole(ctx, user, "root")
				return err
			}),
		},
		{name: "out of space", begin: alarm(etcdserverpb.AlarmRequest_ACTIVATE), end: alarm(etcdserverpb.AlarmRequest_DEACTIVATE)},
	}
}
