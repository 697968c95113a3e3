package rig

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"time"
)

// addRedis adds redis-i. It persists nothing, as the tutorial's locks need no disk: after
// a stop, graceful or not, it starts empty.
func (r *Rig) addRedis(program string, i int) error {
	s, dir, err := r.newServer(fmt.Sprintf("redis-%d", i), 0)
	if err != nil {
		return err
	}
	_, port, _ := strings.Cut(s.addr, ":")
	s.command = func() *exec.Cmd {
		cmd := exec.Command(program, //nolint:gosec,noctx // found by us; ended by Server
			"--port", port, "--bind", loopback, "--dir", dir,
			"--save", "", "--appendonly", "no", "--daemonize", "no")
		cmd.Dir = dir
		return cmd
	}
	s.probe = func(ctx context.Context) error { return ask(ctx, s.addr, "PING\r\n", "+PONG") }
	r.backends = append(r.backends, s)
	r.addrs.Redis = append(r.addrs.Redis, fmt.Sprintf("redis://%s/0", s.addr))
	return nil
}

// ask sends a question to addr and reads lines until one begins with answer.
func ask(ctx context.Context, addr, question, answer string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err //nolint:wrapcheck // names the address
	}
	defer func() { _ = conn.Close() }()
	// Cancelled as well as timed out: a close would otherwise wait for the probe.
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })()

	if _, err := io.WriteString(conn, question); err != nil {
		return err //nolint:wrapcheck // names the address
	}
	var first string
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), answer) {
			return nil
		}
		if first == "" {
			first = lines.Text()
		}
	}
	if first == "" {
		return errors.New("no answer")
	}
	return fmt.Errorf("it answered %q", first)
}
