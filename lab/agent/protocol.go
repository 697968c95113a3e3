package agent

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"oversell/lab/history"
	"oversell/lab/load"
	"oversell/lab/report"
)

// Each side sends a line at least once in every alive, and waits at most silence for one.
const (
	alive   = time.Second
	silence = 10 * time.Second
)

// These limits of a line save memory. Only the records of an agent need long lines.
const (
	maxRequest = 64 << 10
	maxAnswer  = 64 << 20
)

var errClosed = errors.New("the other side closed the connection")

// request is a line from the coordinator. It has at most one field: an empty line only shows that
// the coordinator still runs.
type request struct {
	Hello *hello         `json:"hello,omitempty"`
	Clock bool           `json:"clock,omitempty"`
	Plan  *load.Plan     `json:"plan,omitempty"`  // without its target, which is the agent's
	Start *time.Duration `json:"start,omitempty"` // when the plan begins, on the agent's clock
	Stop  bool           `json:"stop,omitempty"`
}

type hello struct {
	Version string `json:"version"`
	Token   string `json:"token"`
	Target  string `json:"target"`
}

// answer is a line from the agent, with at most one field.
type answer struct {
	Welcome  *report.Machine `json:"welcome,omitempty"`
	Refused  string          `json:"refused,omitempty"` // a sentence
	Clock    *reading        `json:"clock,omitempty"`
	Ready    bool            `json:"ready,omitempty"` // for Start
	Progress *load.Progress  `json:"progress,omitempty"`
	Ops      []history.Op    `json:"ops,omitempty"`
	Done     *done           `json:"done,omitempty"`
}

// reading is the time of an agent. Only Elapsed is used for a run: it is not affected when
// the machine's time is corrected.
type reading struct {
	Elapsed time.Duration `json:"elapsed"` // since the connection was accepted
	Wall    time.Time     `json:"wall"`
}

// done follows the records of a run.
type done struct {
	Began   time.Duration `json:"began"` // on the agent's clock
	Stopped string        `json:"stopped,omitempty"`
}

// link is one side of a connection. In is what it receives, and Out what it sends.
type link[In, Out any] struct {
	socket net.Conn
	lines  *bufio.Scanner

	mu  sync.Mutex
	out *json.Encoder
}

func newLink[In, Out any](socket net.Conn, longest int) *link[In, Out] {
	lines := bufio.NewScanner(socket)
	lines.Buffer(nil, longest)
	return &link[In, Out]{socket: socket, lines: lines, out: json.NewEncoder(socket)}
}

func (l *link[In, Out]) send(message Out) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.socket.SetWriteDeadline(time.Now().Add(silence)); err != nil {
		return err
	}
	return l.out.Encode(message)
}

// receive returns the next line.
func (l *link[In, Out]) receive(within time.Duration) (message In, err error) {
	if err := l.socket.SetReadDeadline(time.Now().Add(within)); err != nil {
		return message, err
	}
	if !l.lines.Scan() {
		var timeout net.Error
		switch err := l.lines.Err(); {
		case err == nil:
			return message, errClosed
		case errors.As(err, &timeout) && timeout.Timeout():
			return message, fmt.Errorf("nothing was received for %v", within)
		default:
			return message, err
		}
	}
	if err := json.Unmarshal(l.lines.Bytes(), &message); err != nil {
		return message, fmt.Errorf("a line was not understood: %w", err)
	}
	return message, nil
}

// keepAlive sends empty lines until over is closed.
func (l *link[In, Out]) keepAlive(over <-chan struct{}) {
	ticker := time.NewTicker(alive)
	defer ticker.Stop()
	var empty Out
	for {
		select {
		case <-over:
			return
		case <-ticker.C:
			if l.send(empty) != nil {
				return // the reader gets an error, too
			}
		}
	}
}
