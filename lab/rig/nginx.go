package rig

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"oversell/nginx"
)

// addNginx adds nginx as the load balancer of the replicas. The replicas must have been added.
func (r *Rig) addNginx() {
	s := r.newServer("nginx", r.found.nginx, r.cfg.Ports.Nginx)
	upstreams := make([]string, len(r.replicas))
	for i, replica := range r.replicas {
		upstreams[i] = replica.addr
	}
	page := cmp.Or(r.cfg.Page, upstreams[0]) // a replica answers that there is no such route
	text, err := nginxConf(s.addr, s.dir, page, upstreams)
	r.check(err)
	// nginx runs in the foreground, so that its master and workers are in the process group that the
	// rig kills. If only the master were killed, its workers would keep the port.
	s.args = []string{"-p", s.dir, "-c", s.write("nginx.conf", text), "-e", "stderr", "-g", "daemon off;"}
	s.probe = func(ctx context.Context) error { return get(ctx, "http://"+s.addr+"/nginx/healthz") }
	r.nginx = []*Server{s}
	r.addrs.Target = "http://" + s.addr
	s.readyURL = r.addrs.Target + "/healthz"
}

// nginxConf replaces texts in docker-compose's file. Each of them must be there as often as expected.
func nginxConf(listen, dir, page string, upstreams []string) (string, error) {
	text := nginx.Conf()
	var err error
	replaceAll := func(times int, old, with string) {
		if n := strings.Count(text, old); n != times && err == nil {
			err = fmt.Errorf("rig: nginx.conf must have %q %d times, but has it %d times", old, times, n)
		}
		text = strings.ReplaceAll(text, old, with)
	}
	replace := func(old, with string) { replaceAll(1, old, with) }
	replace("listen 8080;", "listen "+listen+";")
	for _, name := range []string{"nginx.pid", "nginx-client-body", "nginx-proxy", "nginx-fastcgi", "nginx-uwsgi", "nginx-scgi"} {
		replace(" /tmp/"+name+";", ` "`+filepath.Join(dir, name)+`";`)
	}
	// Remove Docker's name server: addresses need none, and nginx 1.22 does not support resolve.
	replace("    resolver 127.0.0.11 valid=1s ipv6=off;\n", "")
	replace("server lab:8300 resolve;", "server "+page+";")
	// Of the three replicas of both upstreams, one becomes a line per upstream, and two become comments.
	replaceAll(2, "server replica-1:8000 resolve ", "server "+strings.Join(upstreams, " max_fails=1 fail_timeout=1s;\n        server ")+" ")
	replaceAll(2, "server replica-2:8100 ", "# server replica-2:8100 ")
	replaceAll(2, "server replica-3:8200 ", "# server replica-3:8200 ")
	return text, err
}
