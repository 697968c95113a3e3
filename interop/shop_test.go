package interop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"oversell/api"
	"oversell/lab/rig"
)

// The replicas are the program itself, known by HTTP only.

// mixedDeductions sells everything: half of it in two Java threads, the other half
// by the clients of two replicas.
func mixedDeductions(t *testing.T, s side, java *worker) {
	const stock, threads, clients = 2000, 2, 4 // clients of each replica
	key, replicas := api.Key(1), servers.Addresses().Replicas
	setStock(t, stock)

	java.tell(t, "deduct", key, strconv.Itoa(stock/2/threads), strconv.Itoa(threads))
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
		t.Errorf("%d pieces are left of %d sold: updates were lost", left, stock)
	}
	if turns == 0 {
		t.Error("Java and Go sold one after the other: nothing was shared")
	}
	t.Logf("Java sold %d, and %d times after a replica", sold, turns)
	soon(t, "the lock is free", func() bool { return s.free(t, key) })
}

// replicaDies: a replica that holds the lock is killed, with a sale begun and not yet
// written; Java, which has waited for it, goes on.
func replicaDies(t *testing.T, s side, java *worker) {
	key := api.Key(1)
	replica := serverNamed(t, "replica-1")
	setStock(t, 1)
	answer := make(chan error, 1)
	go func() { answer <- deduct(t.Context(), "http://"+replica.Addr(), s.strategy, "&hold=60s") }()
	soon(t, "the replica holds", func() bool { return !s.free(t, key) })
	java.tell(t, "acquire", key, millis(patience))
	soon(t, "Java waits", func() bool { return s.waiting(t, key) })

	replica.Kill()
	if err := <-answer; err == nil {
		t.Error("the dead replica has sold")
	}
	java.wantAnswer(t, "granted", "acquire")
	if left := countStock(t); left != 1 {
		t.Errorf("want 1 piece left, got %d", left)
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

// deduct sells one piece at a replica.
func deduct(ctx context.Context, replica, strategy, more string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, replica+"/check/lock?wait=60s&strategy="+strategy+more, nil)
	if err != nil {
		return err
	}
	_, err = send(r)
	return err
}

// send wants a 200 and returns what came with it.
func send(r *http.Request) ([]byte, error) {
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(answer.Status + ": " + strings.TrimSpace(string(body)))
	}
	return body, err
}

// The second replica is never killed.
func stockURL() string { return servers.Addresses().Replicas[1] + "/stock/1" }

func setStock(t *testing.T, count int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, stockURL()+"?count="+strconv.Itoa(count), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Lab-Token", servers.Addresses().Token)
	if _, err := send(r); err != nil {
		t.Fatal(err)
	}
}

func countStock(t *testing.T) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, stockURL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := send(r)
	if err != nil {
		t.Fatal(err)
	}
	var item struct {
		Count *int `json:"count"`
	}
	if err := json.Unmarshal(body, &item); err != nil || item.Count == nil {
		t.Fatalf("%s: %v", body, err)
	}
	return *item.Count
}

func scan(line, format string, into ...any) bool {
	n, err := fmt.Sscanf(line, format, into...)
	return err == nil && n == len(into)
}
