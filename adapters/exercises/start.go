// Command start is the starting file of the exercises in docs/exercises. Write your lock at the four
// TODOs. The rest speaks the protocol of docs/adapter.md: each request runs in a goroutine of its own.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// TODO 1: add the capability that an exercise needs, such as "reentry":true.
const hello = `{"hello":1,"library":"my-lock","version":"1","language":"Go","backends":["redis"],` +
	`"capabilities":{"lease":true,"lease_per_request":true}}`

// Lock is one acquire, and what belongs to it. Add your own fields.
type Lock struct {
	ID        int64
	Key       string // in Redis
	Owner     string
	Lease     time.Duration
	Renews    bool
	Fence     int64
	Cancelled chan struct{} // closed when the acquire is cancelled
}

// Acquire returns true if the lock was acquired, and false after wait or when it is cancelled.
func (l *Lock) Acquire(wait time.Duration) (bool, error) {
	return false, errors.New("acquire is not written yet") // TODO 2
}

// Release returns true if the lock was released, and false if it was not held any more.
func (l *Lock) Release() (bool, error) {
	return false, errors.New("release is not written yet") // TODO 3
}

// Held returns true if the lock is still held (only for the capability loss_notice). When the lock is
// lost, call say(answer{ID: l.ID, Answer: "lost"}) without being asked.
func (l *Lock) Held() (bool, error) {
	return false, errors.New("held is not written yet") // TODO 4
}

// redis sends one command to REDIS_URL, and returns its answer: a string, an int64, a []any, or nil.
// Exercise 9 needs redisAt with each of strings.Split(os.Getenv("REDLOCK_URLS"), ",").
func redis(command ...any) (any, error) { return redisAt(os.Getenv("REDIS_URL"), command...) }

func redisAt(address string, command ...any) (any, error) {
	at, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	server, err := net.DialTimeout("tcp", at.Host, 5*time.Second)
	if err != nil {
		return nil, err
	}
	defer server.Close()
	_ = server.SetDeadline(time.Now().Add(5 * time.Second))
	answers := bufio.NewReader(server)
	if password, ok := at.User.Password(); ok {
		if _, err := send(server, answers, "AUTH", at.User.Username(), password); err != nil {
			return nil, err
		}
	}
	return send(server, answers, command...)
}

func send(server io.Writer, answers *bufio.Reader, command ...any) (any, error) {
	text := fmt.Sprintf("*%d\r\n", len(command))
	for _, word := range command {
		w := fmt.Sprint(word)
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(w), w)
	}
	if _, err := io.WriteString(server, text); err != nil {
		return nil, err
	}
	return read(answers)
}

func read(answers *bufio.Reader) (any, error) {
	line, err := answers.ReadString('\n')
	if err != nil {
		return nil, err
	}
	kind, rest := line[0], strings.TrimSpace(line[1:])
	n, _ := strconv.Atoi(rest)
	switch {
	case kind == '-':
		return nil, errors.New(rest)
	case kind == ':':
		return int64(n), nil
	case n < 0:
		return nil, nil
	case kind == '$':
		text := make([]byte, n+2)
		_, err := io.ReadFull(answers, text)
		return string(text[:n]), err
	case kind == '*':
		list := make([]any, n)
		for i := range list {
			if list[i], err = read(answers); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	return rest, nil
}

type request struct {
	ID      int64  `json:"id"`
	Do      string `json:"do"`
	Of      int64  `json:"of"`
	Key     string `json:"key"`
	Owner   string `json:"owner"`
	WaitMS  int64  `json:"wait_ms"`
	LeaseMS int64  `json:"lease_ms"`
	NoRenew bool   `json:"no_renew"`
}

type answer struct {
	ID      int64  `json:"id"`
	Answer  string `json:"answer"`
	Fence   int64  `json:"fence,omitempty"`
	Why     string `json:"why,omitempty"`
	Backend string `json:"backend,omitempty"`
}

var writing sync.Mutex

func say(line any) {
	text, _ := json.Marshal(line)
	writing.Lock()
	defer writing.Unlock()
	fmt.Println(string(text))
}

func serve(r request, l *Lock) {
	a, ok, err := answer{ID: r.ID}, false, error(nil)
	switch r.Do {
	case "acquire":
		if ok, err = l.Acquire(time.Duration(r.WaitMS) * time.Millisecond); ok {
			a.Answer, a.Fence = "granted", l.Fence
		} else {
			a.Answer = "not_acquired"
		}
	case "release":
		if ok, err = l.Release(); ok {
			a.Answer = "released"
		} else {
			a.Answer = "not_held"
		}
	case "verify":
		if ok, err = l.Held(); ok {
			a.Answer = "held"
		} else {
			a.Answer = "not_held"
		}
	default: // clear: delete the data of the key. Add the names of your other keys.
		_, err = redis("DEL", "lock:"+r.Key)
		a.Answer = "done"
	}
	if err != nil {
		a = answer{ID: r.ID, Answer: "error", Why: err.Error(), Backend: "redis"}
	}
	say(a)
}

func main() {
	fmt.Println(hello)
	locks := map[int64]*Lock{} // by the id of the acquire
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if r.Do == "acquire" {
			if r.LeaseMS == 0 {
				r.LeaseMS, _ = strconv.ParseInt(os.Getenv("LEASE_MS"), 10, 64)
			}
			locks[r.ID] = &Lock{
				ID: r.ID, Key: "lock:" + r.Key, Owner: r.Owner, Renews: !r.NoRenew,
				Lease: time.Duration(r.LeaseMS) * time.Millisecond, Cancelled: make(chan struct{}),
			}
			r.Of = r.ID
		}
		switch l := locks[r.Of]; {
		case r.Do != "cancel":
			go serve(r, l)
		case l != nil:
			close(l.Cancelled)
		}
	}
}
