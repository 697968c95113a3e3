package interop

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"

	"oversell/api"
	"oversell/lab/rig"
)

// mixedDeductions sells all items: one half in two Java threads, the other half through two
// replicas.
func mixedDeductions(t *testing.T, s side, java *worker) {
	const stock, threads, clients = 2000, 2, 4 // clients of each replica
	key, replicas := api.Key(1), servers.Addresses().Replicas
	setStock(t, stock)

	java.send(t, "deduct", key, strconv.Itoa(stock/2/threads), strconv.Itoa(threads))
	soon(t, "Java sells", func() bool { return countStock(t) < stock })
	var selling sync.WaitGroup
	for client := range clients * len(replicas) {
		selling.Go(func() {
			for range stock / 2 / clients / len(replicas) {
				if err := deduct(t.Context(), replicas[client%len(replicas)], s.strategy, ""); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	selling.Wait()

	var sold, turns int
	if answer := java.answer(t); !scan(answer, "sold %d %d", &sold, &turns) || sold != stock/2 {
		t.Fatalf("Java was to sell %d: %s", stock/2, answer)
	}
	if left := countStock(t); left != 0 {
		t.Errorf("lost updates: %d sold, but %d left", stock, left)
	}
	if turns == 0 {
		t.Error("Java sold everything before or after Go: the lock was not contended")
	}
	t.Logf("Java sold %d; %d times a replica had sold in between", sold, turns)
	soon(t, "the lock is free", func() bool { return s.free(t, key) })
}

// replicaDies kills a replica that holds the lock but has not written its sale. Java waits for the
// lock and must get it.
func replicaDies(t *testing.T, s side, java *worker) {
	key := api.Key(1)
	replica := serverNamed(t, "replica-1")
	setStock(t, 1)
	answer := make(chan error, 1)
	go func() { answer <- deduct(t.Context(), "http://"+replica.Addr(), s.strategy, "&hold=60s") }()
	soon(t, "the replica holds", func() bool { return !s.free(t, key) })
	java.send(t, "acquire", key, millis(longWait))
	soon(t, "Java waits", func() bool { return s.waiting(t, key) })

	replica.Kill()
	if err := <-answer; err == nil {
		t.Error("the dead replica has sold")
	}
	java.wantAnswer(t, "granted", "acquire")
	if left := countStock(t); left != 1 {
		t.Errorf("%d items left, want 1", left)
	}
	java.want(t, "released", "release", key)
	if err := replica.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func serverNamed(t *testing.T, name string) *rig.Server {
	t.Helper()
	for _, s := range servers.Servers() {
		if s.Name() == name {
			return s
		}
	}
	t.Fatalf("no server %s", name)
	return nil
}

// deduct sells one item at a replica.
func deduct(ctx context.Context, replica, strategy, more string) error {
	return client(replica).Call(ctx, http.MethodPost, "/check/lock?wait=60s&strategy="+strategy+more, nil, nil)
}

func client(replica string) api.Client {
	return api.Client{Base: replica, Token: servers.Addresses().Token, HTTP: http.DefaultClient}
}

// survivor returns a client of the replica that no test kills.
func survivor() api.Client { return client(servers.Addresses().Replicas[1]) }

func setStock(t *testing.T, count int) {
	t.Helper()
	if _, err := survivor().ResetStock(t.Context(), 1, count); err != nil {
		t.Fatal(err)
	}
}

func countStock(t *testing.T) int {
	t.Helper()
	count, err := survivor().Count(t.Context(), "none", 1)
	if err != nil {
		t.Fatal(err)
	}
	return count
}

func scan(line, format string, into ...any) bool {
	n, err := fmt.Sscanf(line, format, into...)
	return err == nil && n == len(into)
}
