package rig

import (
	"context"
	_ "embed" // for prometheus.html
)

// console is a page of Prometheus that shows the panels of the dashboard for Grafana.
//
//go:embed prometheus.html
var console string

// consolePath is the path of the console in Prometheus.
const consolePath = "/consoles/oversell.html"

// addPrometheus adds a Prometheus, which scrapes the replicas. The replicas must have been added.
func (r *Rig) addPrometheus() {
	s := r.newServer("prometheus", r.found.prometheus, r.cfg.Ports.Prometheus)
	consoles := s.mkdir("consoles")
	s.write(consolePath, console)
	s.args = []string{
		"--config.file", s.conf("prometheus.yml", r.replicas), "--storage.tsdb.path", s.mkdir("data"),
		"--web.listen-address", s.addr, "--web.console.templates", consoles, "--web.console.libraries", consoles, "--log.level", "warn",
	}
	// The replicas and their backends need the other cores.
	s.env = environment("GOMAXPROCS=1")
	s.probe = func(ctx context.Context) error { return get(ctx, "http://"+s.addr+"/-/ready") }
	r.prometheus = []*Server{s}
	r.addrs.Prometheus = "http://" + s.addr
}

// Console returns the address of the page with the metrics of the replicas, or an empty address
// without Prometheus.
func (a Addresses) Console() string {
	if a.Prometheus == "" {
		return ""
	}
	return a.Prometheus + consolePath
}
