package rig

import (
	"context"
	_ "embed" // for prometheus.html
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// prometheusConf scrapes the replicas. Its label instance is the name of the replica, which a restart
// keeps.
const prometheusConf = `global:
  scrape_interval: 1s
  scrape_timeout: 1s
scrape_configs:
  - job_name: oversell
    static_configs:
`

// console is a page of Prometheus that shows the panels of the dashboard for Grafana.
//
//go:embed prometheus.html
var console string

// consolePath is the path of the console in Prometheus.
const consolePath = "/consoles/oversell.html"

// addPrometheus adds a Prometheus, which scrapes the replicas. The replicas must have been added.
func (r *Rig) addPrometheus(program string) {
	s := r.newServer("prometheus", program, r.cfg.Ports.Prometheus)
	var conf strings.Builder
	conf.WriteString(prometheusConf)
	for _, replica := range r.replicas {
		_, _ = fmt.Fprintf(&conf, "      - targets: [%q]\n        labels: {instance: %s}\n", replica.addr, replica.name)
	}
	consoles := s.mkdir("consoles")
	if err := os.WriteFile(filepath.Join(consoles, filepath.Base(consolePath)), []byte(console), 0o600); err != nil {
		r.check(fmt.Errorf("rig: %w", err))
	}
	s.args = []string{
		"--config.file", s.write("prometheus.yml", conf.String()), "--storage.tsdb.path", s.mkdir("data"),
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
