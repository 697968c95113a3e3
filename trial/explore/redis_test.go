package explore

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"oversell/lab/rig"
	"oversell/lab/rig/rigtest"
	"oversell/locks"
	"oversell/locks/catalog"
	"oversell/locks/redislock"
	"oversell/stock"
)

// TestRedis lets two owners use each lock of Redis on the servers in memory and on real ones. Both must give
// the same answer to each command and script. With -v, it writes them.
//
// Left out are the notifications: without them, clients would wait in vain in the searches.
func TestRedis(t *testing.T) {
	onServers := rigtest.Start(t, rig.Config{Redis: redisServers}).Addresses().Redis
	var memory []string
	for range redisServers {
		memory = append(memory, "redis://"+miniredis.RunT(t).Addr())
	}
	for _, card := range catalog.Cards() {
		if card.Family == "redis" && card.Locker {
			t.Run(card.ID, func(t *testing.T) {
				sameAnswers(t, redisAnswers(t, card.ID, memory), redisAnswers(t, card.ID, onServers))
			})
		}
	}
}

// redisAnswers returns the commands of a strategy with their answers, without random tokens and times.
func redisAnswers(t *testing.T, strategy string, servers []string) string {
	t.Helper()
	const lease = 30 * time.Second
	notes := make([]redisNotes, len(servers))
	b := catalog.Backends{Lease: lease}
	for i, url := range servers {
		c, err := redislock.Open(url, 2)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		c.AddHook(&notes[i])
		b.Redlock = append(b.Redlock, c)
	}
	b.Redis = b.Redlock[0]
	build, _ := catalog.ConstructorOf(strategy)
	lock := build(b).(locks.Locker)
	var outcomes []string
	for _, owners := range []string{"AB", "BA"} {
		first, err := lock.Acquire(t.Context(), locks.Request{Key: "explored", Owner: owners[:1], Lease: lease})
		if err != nil {
			t.Fatal(err)
		}
		_, refused := lock.Acquire(t.Context(), locks.Request{Key: "explored", Owner: owners[1:], Lease: lease})
		outcomes = append(outcomes, fmt.Sprint(errors.Is(refused, locks.ErrNotAcquired), first.Release(t.Context())))
		time.Sleep(50 * time.Millisecond) // until the minority of redlock has answered
	}
	for i := range notes {
		outcomes = append(outcomes, fmt.Sprintf("redis-%d", i+1), notes[i].String())
	}
	return strings.Join(outcomes, "\n")
}

// redisNotes writes down what one server answers.
type redisNotes struct {
	mu    sync.Mutex
	lines []string
}

// String returns the notes in alphabetical order, since a lock may send two commands at the same time.
func (n *redisNotes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	slices.Sort(n.lines)
	return strings.Join(n.lines, "\n")
}

func (n *redisNotes) note(commands ...redis.Cmder) {
	times := regexp.MustCompile(`\b\d{4,}\b`)
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range commands {
		if !slices.Contains([]string{"hello", "client", "auth", "select", "ping"}, c.Name()) {
			n.lines = append(n.lines, times.ReplaceAllString(stock.WithoutTokens(c.String()), "N"))
		}
	}
}

// DialHook notes nothing.
func (*redisNotes) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook notes the answer to a command.
func (n *redisNotes) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, c redis.Cmder) error {
		err := next(ctx, c)
		n.note(c)
		return err
	}
}

// ProcessPipelineHook notes the answers to several commands.
func (n *redisNotes) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		err := next(ctx, commands)
		n.note(commands...)
		return err
	}
}
