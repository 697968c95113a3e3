// A lock in Redis behind the protocol of docs/adapter.md. Build it with
// go build -o bin/adapter-example adapters/examples/lock.go
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const hello = `{"hello":1,"library":"lock.go","version":"1","language":"Go","backends":["redis"],` +
	`"capabilities":{"lease":true,"lease_per_request":true,"renewal":true,"loss_notice":true},` +
	`"protects":["crash","overrun","cutoff","lost-reply"],"breaks":[{"hazard":"pause"},` +
	`{"hazard":"failover"},{"hazard":"clock-jump"},{"hazard":"nesting"},{"hazard":"polling"}]}`

const ours = "if redis.call('get',KEYS[1])~=ARGV[1] then return 0 end return redis.call"

type request struct {
	ID, Of  int64 // Of is the ID of the acquire
	Do, Key string
	WaitMS  int64 `json:"wait_ms"`
	LeaseMS int64 `json:"lease_ms"`
	NoRenew bool  `json:"no_renew"`
}

type lock struct {
	request
	client *redis.Client
	token  string
	over   context.Context // ends when the acquire is cancelled, or the lock is released
	end    context.CancelFunc
	until  atomic.Int64 // the end of the lease, in nanoseconds since began
}

var began = time.Now()

func say(id int64, answer, why string) {
	line, _ := json.Marshal(map[string]any{"id": id, "answer": answer, "why": why})
	fmt.Println(string(line)) // one write
}

// redis sends a command, and waits a second at most for its answer.
func (l *lock) redis(command ...any) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return l.client.Do(ctx, command...).Result()
}

// extend counts the lease from the sending of the command, less 2 % because clocks differ.
func (l *lock) extend(command ...any) (ok bool, err error) {
	sent := time.Since(began)
	got, err := l.redis(command...)
	if ok = got == "OK" || got == int64(1); ok {
		l.until.Store(int64(sent) + l.LeaseMS*980_000)
	}
	return ok, err
}

func (l *lock) left() time.Duration { return time.Duration(l.until.Load()) - time.Since(began) }

func (l *lock) acquire() (string, error) {
	for end := time.Now().Add(time.Duration(l.WaitMS) * time.Millisecond); ; {
		ok, err := l.extend("SET", "lock:"+l.Key, l.token, "NX", "PX", l.LeaseMS)
		switch {
		case err != nil && !errors.Is(err, redis.Nil): // the answer may be lost, and the key taken
			_, _ = l.release()
			return "", err
		case ok:
			go l.watch()
			return "granted", nil
		case !time.Now().Before(end) || l.sleep(20*time.Millisecond):
			return "not_acquired", nil
		}
	}
}

func (l *lock) sleep(d time.Duration) (over bool) {
	select {
	case <-l.over.Done():
	case <-time.After(d):
	}
	return l.over.Err() != nil
}

func (l *lock) release() (string, error) {
	held := l.left() > 0
	l.end()
	got, err := l.redis("EVAL", ours+"('del',KEYS[1])", 1, "lock:"+l.Key, l.token)
	if got == int64(1) && held {
		return "released", nil
	}
	return "not_held", err
}

// watch renews the lease until the release, and sends lost when it has ended.
func (l *lock) watch() {
	for l.left() > 0 && !l.sleep(min(time.Duration(l.LeaseMS)*time.Millisecond/3, l.left())) {
		if l.NoRenew {
			continue
		}
		ok, err := l.extend("EVAL", ours+"('pexpire',KEYS[1],ARGV[2])", 1, "lock:"+l.Key, l.token, l.LeaseMS)
		if err == nil && !ok { // the key was deleted, or has another value
			l.until.Store(0)
		}
	}
	if l.over.Err() == nil {
		say(l.ID, "lost", "the lease has ended")
	}
}

func (l *lock) serve(r request) {
	var answer, why string
	var err error
	switch r.Do {
	case "acquire":
		answer, err = l.acquire()
	case "release":
		answer, err = l.release()
	case "verify":
		if answer = "not_held"; l.left() > 0 {
			answer = "held"
		}
	case "clear":
		_, err = l.redis("DEL", "lock:"+r.Key)
		answer = "done"
	}
	if err != nil {
		answer, why = "error", err.Error()
	}
	say(r.ID, answer, why)
}

func main() {
	fmt.Println(hello)
	lease, _ := strconv.ParseInt(os.Getenv("LEASE_MS"), 10, 64)
	options, err := redis.ParseURL(cmp.Or(os.Getenv("REDIS_URL"), "redis://127.0.0.1:6379/0"))
	if err != nil {
		panic(err)
	}
	options.MaxRetries = -1 // after a lost answer, a second SET NX would find our own key
	client, locks := redis.NewClient(options), map[int64]*lock{}
	for in := json.NewDecoder(os.Stdin); ; {
		var r request
		if in.Decode(&r) != nil {
			return
		}
		if r.Do == "acquire" || r.Do == "clear" {
			l := &lock{request: r, client: client, token: rand.Text()}
			l.over, l.end = context.WithCancel(context.Background())
			l.LeaseMS, r.Of, locks[r.ID] = cmp.Or(r.LeaseMS, lease), r.ID, l
		}
		if l := locks[r.Of]; l != nil && r.Do == "cancel" {
			l.end()
		} else if l != nil {
			go l.serve(r)
		}
		if r.Do == "release" {
			delete(locks, r.Of)
		}
	}
}
