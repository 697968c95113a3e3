package cli_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"oversell/api"
	"oversell/lab/backend"
	"oversell/lab/fault"
	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
	"oversell/locks/catalog"
)

// TestFailoverUnderLoad kills the leader of each engine while clients buy, and prints the time until the first
// sale after it. In a Galera cluster, that is the node at which the replicas write. The fences keep what a master
// of Redis lost from doing harm. It needs OVERSELL_TOPOLOGIES.
func TestFailoverUnderLoad(t *testing.T) {
	if os.Getenv("OVERSELL_TOPOLOGIES") == "" {
		t.Skip("make topologies runs it")
	}
	redisMaster := func(_ context.Context, r *rig.Rig) (fault.Fault, error) {
		return fault.MastersOf(r).Replace(), nil
	}
	for engine, test := range map[string]struct {
		strategies string
		change     func(*rig.Config)
		leader     func(context.Context, *rig.Rig) (fault.Fault, error)
	}{
		"Galera":        {"atomic for-update version db-row redis zk", func(c *rig.Config) { c.Database = rig.GaleraCluster }, killWriter},
		"Sentinel":      {"redis", func(c *rig.Config) { c.RedisTopology = rig.RedisSentinel }, redisMaster},
		"Redis Cluster": {"redis", func(c *rig.Config) { c.RedisTopology = rig.RedisCluster }, redisMaster},
		"ZooKeeper": {"zk", func(c *rig.Config) { c.Zookeeper = 3 }, func(ctx context.Context, r *rig.Rig) (fault.Fault, error) {
			return killLeader(ctx, r, "zookeeper", r.Addresses().Zookeeper, backend.ZooKeeperLeads)
		}},
		"etcd": {"etcd", func(c *rig.Config) { c.Etcd = 3 }, func(ctx context.Context, r *rig.Rig) (fault.Fault, error) {
			return killLeader(ctx, r, "etcd", r.Addresses().Etcd, backend.EtcdLeads)
		}},
	} {
		t.Run(engine, func(t *testing.T) {
			cfg := rig.FullLab("", token)
			cfg.ReplicaArgs = []string{"--lease", "5s", "--zk-session", "3s"}
			test.change(&cfg)
			lab := rigtest.Start(t, cfg)
			for _, strategy := range strings.Fields(test.strategies) {
				failOver(t, lab, strategy, test.leader)
			}
		})
	}
}

func failOver(t *testing.T, lab *rig.Rig, strategy string, find func(context.Context, *rig.Rig) (fault.Fault, error)) {
	t.Helper()
	l := startLoad(t, lab, strategy)
	l.await(t, 50)
	leader, err := find(t.Context(), lab)
	if err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	heal, err := leader.Inject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l.awaitAfter(t, time.Now())
	t.Logf("%s: the first sale %v after %s was killed", strategy, time.Unix(0, l.firstAfter.Load()).Sub(killed).Round(time.Millisecond), leader.Target)
	l.await(t, int(l.sold.Load())+50)
	if err := heal(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
	l.await(t, int(l.sold.Load())+50)
	l.check(t)
}

// killWriter returns the fault that kills the node of a Galera cluster at which all replicas write.
func killWriter(ctx context.Context, r *rig.Rig) (fault.Fault, error) {
	const query = "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'wsrep_replicated'"
	var before []string // the number of transactions that each node has sent to the others
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
		var writes []string
		var writers []*rig.Server
		for i, name := range []string{"mysql", "mysql-2", "mysql-3"} {
			s, err := r.Server(name)
			if err != nil {
				return fault.Fault{}, err
			}
			cfg, err := mysql.ParseDSN(r.Addresses().MySQL)
			if err != nil {
				return fault.Fault{}, err
			}
			cfg.Addr = s.Addr()
			n, err := backend.MySQLValue(ctx, cfg.FormatDSN(), query)
			if err != nil {
				return fault.Fault{}, err
			}
			if writes = append(writes, n); before != nil && n != before[i] {
				writers = append(writers, s)
			}
		}
		if before = writes; len(writers) == 1 {
			return fault.Kill(writers[0]), nil
		}
	}
	return fault.Fault{}, errors.New("the replicas never write at one node")
}

func killLeader(ctx context.Context, r *rig.Rig, kind string, servers []string, leads func(context.Context, string) (bool, error)) (fault.Fault, error) {
	for i, addr := range servers {
		if yes, err := leads(ctx, addr); err != nil || yes {
			s, missing := r.Server(fmt.Sprintf("%s-%d", kind, i+1))
			return fault.Kill(s), errors.Join(err, missing)
		}
	}
	return fault.Fault{}, fmt.Errorf("no %s server is the leader", kind)
}

// buyers are clients that buy one piece after another.
type buyers struct {
	client     api.Client
	strategy   string
	fenced     bool // only strategies with fencing tokens accept this parameter
	end        context.CancelFunc
	clients    sync.WaitGroup
	sold       atomic.Int64
	unknown    atomic.Int64 // sales without an answer
	after      atomic.Int64 // a time in ns, or 0
	firstAfter atomic.Int64 // when the first sale after that time was answered
}

const loadStock = 1_000_000

func startLoad(t *testing.T, lab *rig.Rig, strategy string) *buyers {
	t.Helper()
	fenced := slices.ContainsFunc(catalog.Cards(), func(c api.Card) bool { return c.ID == strategy && c.Fenced })
	l := &buyers{client: api.Client{Base: lab.Addresses().Target, Token: token, HTTP: &http.Client{Timeout: time.Minute}}, strategy: strategy, fenced: fenced}
	if err := l.client.SetStock(t.Context(), 1, loadStock); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	l.end = cancel
	t.Cleanup(func() { cancel(); l.clients.Wait() })
	for range 20 {
		l.clients.Go(func() {
			for ctx.Err() == nil {
				l.buy()
			}
		})
	}
	return l
}

func (l *buyers) buy() {
	began := time.Now()
	path := fmt.Sprintf("/check/lock?product=1&fenced=%t&wait=1s&strategy=%s", l.fenced, l.strategy)
	err := l.client.Call(context.Background(), http.MethodPost, path, nil, nil)
	var answer *api.Error
	switch {
	case err == nil:
		l.sold.Add(1)
		if after := l.after.Load(); after > 0 && began.UnixNano() >= after {
			l.firstAfter.CompareAndSwap(0, time.Now().UnixNano())
		}
	case !errors.As(err, &answer) || answer.Status == http.StatusInternalServerError || answer.Problem.Outcome == api.Unknown:
		l.unknown.Add(1)
	default:
		time.Sleep(20 * time.Millisecond) // nothing was sold
	}
}

// awaitAfter waits for a sale that began after a time.
func (l *buyers) awaitAfter(t *testing.T, since time.Time) {
	t.Helper()
	l.after.Store(since.UnixNano())
	l.until(t, "a sale after the fail-over", func() bool { return l.firstAfter.Load() > 0 })
}

func (l *buyers) await(t *testing.T, sold int) {
	t.Helper()
	l.until(t, fmt.Sprintf("%d sales", sold), func() bool { return int(l.sold.Load()) >= sold })
}

func (l *buyers) until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for began := time.Now(); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > 2*time.Minute {
			t.Fatalf("never: %s; %d sold", what, l.sold.Load())
		}
	}
}

// check ends the load, and compares what was sold with what the row lacks.
func (l *buyers) check(t *testing.T) {
	t.Helper()
	l.end()
	l.clients.Wait()
	left, err := l.client.Count(t.Context(), l.strategy, 1)
	if err != nil {
		t.Fatal(err)
	}
	sold, unknown, taken := int(l.sold.Load()), int(l.unknown.Load()), loadStock-left
	t.Logf("%d sold, %d without an answer, %d taken from the row", sold, unknown, taken)
	if taken < sold || taken > sold+unknown {
		t.Errorf("%d sold, and %d without an answer, but the row lacks %d", sold, unknown, taken)
	}
}
