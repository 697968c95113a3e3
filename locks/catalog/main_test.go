package catalog_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"oversell/api"
	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
	"oversell/locks"
	"oversell/locks/catalog"
	"oversell/locks/etcdlock"
	"oversell/locks/mysqllock"
	"oversell/locks/redislock"
	"oversell/locks/zklock"
	"oversell/migrations"
	"oversell/stock"
	"oversell/trial/lockstest"
)

// workerEnv is the environment variable that makes the test binary a worker of lockstest. Its value
// is the worker's settings in JSON.
const workerEnv = "OVERSELL_LOCKSTEST_WORKER"

// settings has the addresses of the servers and the default lease of a worker process. The default
// lease is also the timeout of the worker's ZooKeeper session.
type settings struct {
	rig.Addresses
	Lease        time.Duration
	Certificates *rig.Certificates // of a rig with TLS, or nil
}

// secured returns the clients' settings for a rig with TLS, and a DSN that uses them.
func (c settings) secured() (config *tls.Config, dsn string, err error) {
	dsn = c.MySQL
	if c.Certificates == nil {
		return nil, dsn, nil
	}
	authority, err := os.ReadFile(c.Certificates.CA)
	if err != nil {
		return nil, "", err
	}
	own, err := tls.LoadX509KeyPair(c.Certificates.Cert, c.Certificates.Key)
	if err != nil {
		return nil, "", err
	}
	config = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool(), Certificates: []tls.Certificate{own}}
	config.RootCAs.AppendCertsFromPEM(authority)
	dsn, err = stock.SecureDSN(dsn+"?tls=true", config, "")
	return config, dsn, err
}

// backends returns the configuration of a rig (real servers on this machine) with all servers that
// the strategies need.
func backends() rig.Config { return rig.Config{MySQL: true, Redis: 5, Zookeeper: 1, Etcd: 1} }

var servers *rig.Rig

func TestMain(m *testing.M) {
	if text := os.Getenv(workerEnv); text != "" {
		if err := work(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	// The checks mostly wait for leases, so many of them can run at once.
	if err := flag.Set("test.parallel", "12"); err != nil {
		panic(err)
	}
	rigtest.MainWith(m, rigtest.Guest(backends()), func(r *rig.Rig) { servers = r })
}

func work(text string) error {
	var c settings
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	b, err := open(c)
	if err != nil {
		return err
	}
	strategies := strategiesOn(b)
	return lockstest.Work(os.Stdin, os.Stdout, func(id string) (locks.Strategy, error) {
		if s, ok := strategies[id]; ok {
			return s, nil
		}
		return nil, fmt.Errorf("no strategy %q", id)
	})
}

// strategiesOn returns all strategies by their ID.
func strategiesOn(b catalog.Backends) map[string]locks.Strategy {
	all := map[string]locks.Strategy{}
	for _, s := range catalog.Strategies(b) {
		all[s.Card().ID] = s
	}
	return all
}

// open opens new clients of the servers, as each replica does.
func open(c settings) (b catalog.Backends, err error) {
	const conns = 16
	secure, dsn, err := c.secured()
	if err != nil {
		return b, err
	}
	db, err := stock.Open(dsn, conns)
	if err != nil {
		return b, err
	}
	if secure != nil {
		c.Redis = c.RedisTLS
	}
	var masters []redis.UniversalClient
	for _, url := range c.Redis {
		master, err := redislock.Open(url, conns)
		if err != nil {
			return b, err
		}
		masters = append(masters, master)
	}
	single := masters[0]
	if c.SingleRedis != "" {
		if single, err = redislock.Open(c.SingleRedis, conns); err != nil {
			return b, err
		}
	}
	user := zklock.Access{TLS: secure}
	if secure != nil {
		c.Zookeeper, user.Digest = c.ZookeeperTLS, "oversell:a password of this test"
	}
	session, err := zklock.Open(c.Zookeeper, c.Lease, user)
	if err != nil {
		return b, err
	}
	members, err := etcdlock.Open(c.Etcd, etcdlock.Access{TLS: secure})
	if err != nil {
		return b, err
	}
	go mysqllock.CleanRows(context.Background(), db, time.Second)
	return catalog.Backends{DB: db, Redis: single, Redlock: masters, ZooKeeper: session, Etcd: members, Lease: c.Lease}, nil
}

// testbed has the worker processes that run the strategies on the servers of a rig, the strategies in
// this process, and the database with the stock.
type testbed struct {
	workers    *lockstest.Workers
	strategies map[string]locks.Strategy
	db         *gorm.DB
}

// longLease is a lease that does not end during a check.
const longLease = 40 * time.Second

// newTestbed migrates the rig's database and prepares workers for it.
func newTestbed(t *testing.T, r *rig.Rig) *testbed {
	t.Helper()
	db, err := stock.Open(r.Addresses().MySQL, 8)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	if err := migrations.Up(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	own, err := open(settings{r.Addresses(), longLease, r.Config().Certificates})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.Close)
	bed := &testbed{db: db, strategies: strategiesOn(own), workers: &lockstest.Workers{Lease: longLease, Command: func(lease time.Duration) *exec.Cmd {
		return workerCommand(settings{r.Addresses(), lease, r.Config().Certificates})
	}}}
	t.Cleanup(func() { _ = pool.Close() })
	t.Cleanup(func() {
		if err := bed.workers.Close(); err != nil {
			t.Error(err)
		}
	})
	return bed
}

func workerCommand(c settings) *exec.Cmd {
	text, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), workerEnv+"="+string(text), "GORACE=halt_on_error=1 atexit_sleep_ms=0")
	return cmd
}

func (b *testbed) config(card api.Card) *lockstest.Config {
	return &lockstest.Config{
		Card: card, Workers: b.workers, NewProduct: b.newProduct,
		Count: func(ctx context.Context, product int64) (int, error) { return b.count(ctx, card.ID, product) },
		Lease: 3 * time.Second, Timeout: 20 * time.Second,
	}
}

func (b *testbed) newProduct(ctx context.Context, count int) (int64, error) {
	item := stock.Item{ProductCode: "lockstest", StockCode: "001", Count: count}
	err := b.db.WithContext(ctx).Create(&item).Error
	return item.ID, err
}

// count counts a product where the strategy keeps the stock.
func (b *testbed) count(ctx context.Context, strategy string, product int64) (int, error) {
	if holder, ok := b.strategies[strategy].(locks.StockHolder); ok {
		return holder.Count(ctx, product)
	}
	item, err := stock.NewLedger(b.db).Read(ctx, product)
	return item.Count, err
}

// cards returns the cards (the strategies' descriptions with their claims). It needs no server.
func cards() []api.Card { return catalog.Cards() }
