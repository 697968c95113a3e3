package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"oversell/lab/load"
	"oversell/lab/rig"
)

// plain is a load balancer as a class writes it: round-robin, and a new connection for each request.
const plain = `daemon off; pid %[1]s/pid; error_log stderr crit; events {}
http { access_log off; client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/fastcgi;
uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi; upstream tickets { %[2]s }
server { listen %[3]s; location / { proxy_pass http://tickets; } } }`

// balancers compares the locks with for-update behind the lab's balancer, and behind a plain one.
func (b *bench) balancers(ctx context.Context) error {
	round, end, err := b.plainNginx(ctx)
	if err != nil {
		return err
	}
	defer end()
	b.printf("Beside `for-update` in the same round, behind the lab's balancer and behind a plain nginx (round-robin).\n\n")
	rows := [][]string{{"balancer", "strategy", "sold /s", "p99 ms", "rate / for-update's", "p99 / for-update's"}}
	for i, at := range []rig.Addresses{b.at, round} {
		measured, err := inTurn(b, []string{"for-update", "redis", "zk"}, func(strategy string) (figures, error) {
			return exact(b.forLength(ctx, at, load.Plan{Strategy: strategy, Clients: b.clients, Wait: time.Minute}))
		})
		if err != nil {
			return err
		}
		name, other := []string{"least_conn", "plain"}[i], measured["for-update"]
		for _, strategy := range []string{"redis", "zk"} {
			own := measured[strategy]
			rows = append(rows, []string{name, strategy, ranged(own, rate, 0), ranged(own, p99, 1), times(own, other, rate), times(own, other, p99)})
		}
	}
	b.rows(rows)
	return nil
}

func (b *bench) plainNginx(ctx context.Context) (at rig.Addresses, end func(), err error) {
	dir, err := os.MkdirTemp("", "bench-nginx-")
	if err != nil {
		return at, nil, err
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return at, nil, err
	}
	address, servers := free.Addr().String(), ""
	_ = free.Close()
	for _, replica := range b.at.Replicas {
		servers += "server " + strings.TrimPrefix(replica, "http://") + "; "
	}
	conf := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, plain, dir, servers, address), 0o600); err != nil {
		return at, nil, err
	}
	program, err := exec.LookPath("nginx")
	if err != nil {
		program = "/usr/sbin/nginx" // not in everybody's PATH
	}
	command := exec.CommandContext(ctx, program, "-p", dir, "-e", "stderr", "-c", conf)
	if err := command.Start(); err != nil {
		return at, nil, err
	}
	at = b.at
	at.Target = "http://" + address
	return at, func() {
		_ = command.Process.Signal(syscall.SIGQUIT)
		_ = command.Wait()
		_ = os.RemoveAll(dir)
	}, nil
}
