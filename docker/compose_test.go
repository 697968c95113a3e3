// Package docker tests docker-compose.yml without Docker, with the loader of `docker compose
// config`. test.sh tests the same file with Docker.
package docker

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// load reads docker-compose.yml with all profiles. Like `docker compose config -q`, it fails on a
// bad schema, a bad interpolation, or a missing service or network.
func load(t *testing.T, env ...string) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{"../docker-compose.yml"},
		cli.WithName("test"), cli.WithProfiles([]string{"*"}), cli.WithEnv(env))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return project
}

func TestValid(t *testing.T) {
	if n := len(load(t).Services); n != 14 {
		t.Errorf("%d services, want 14", n)
	}
}

// published returns each service's port on the host, with the address on which it listens.
func published(p *types.Project) map[string]string {
	ports := map[string]string{}
	for name, s := range p.Services {
		for _, port := range s.Ports {
			ports[name] += port.HostIP + ":" + port.Published
		}
	}
	return ports
}

func TestPorts(t *testing.T) {
	tests := []struct {
		name string
		env  []string
		want [4]string
	}{
		{"as documented", nil, [4]string{"8080", "8000", "8100", "8200"}},
		{"chosen", []string{"NGINX_PORT=9080", "REPLICA_1_PORT=9000", "REPLICA_2_PORT=9100", "REPLICA_3_PORT=9200"}, [4]string{"9080", "9000", "9100", "9200"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := published(load(t, test.env...))
			for i, service := range []string{"nginx", "replica-1", "replica-2", "replica-3"} {
				if want := "127.0.0.1:" + test.want[i]; got[service] != want {
					t.Errorf("%s is published on %q, want %q", service, got[service], want)
				}
			}
			if len(got) != 4 {
				t.Errorf("published: %v, want nginx and the replicas only", got)
			}
		})
	}
}

// TestHealthChecks rejects short intervals: a check every second would cost half a core.
func TestHealthChecks(t *testing.T) {
	for name, s := range load(t).Services {
		switch h := s.HealthCheck; {
		case name == "jmeter": // it ends by itself
		case h == nil:
			t.Errorf("%s has no health check", name)
		case h.Interval == nil || time.Duration(*h.Interval) < 10*time.Second:
			t.Errorf("%s is checked every %v for ever", name, h.Interval)
		case h.StartInterval == nil || time.Duration(*h.StartInterval) > 2*time.Second || h.StartPeriod == nil:
			t.Errorf("%s is checked every %v while it starts, within %v: --wait takes longer than it must", name, h.StartInterval, h.StartPeriod)
		}
	}
}

// TestNginxHealthAsksAReplica checks that nginx's health check reaches a replica. An answer of
// nginx itself would not show that it knows the replicas' addresses.
func TestNginxHealthAsksAReplica(t *testing.T) {
	test := strings.Join(load(t).Services["nginx"].HealthCheck.Test, " ")
	if !strings.Contains(test, ":8080/healthz") {
		t.Errorf("nginx's health check is %s", test)
	}
}

// TestNginxResolvesAtRunTime: a new container has a new address, so nginx must repeat DNS lookups.
func TestNginxResolvesAtRunTime(t *testing.T) {
	conf, err := os.ReadFile("../nginx/nginx.conf")
	if err != nil {
		t.Fatal(err)
	}
	project := load(t)
	servers := regexp.MustCompile(`(?m)^\s+server ([a-z0-9-]+):\d+ (.*);$`).FindAllStringSubmatch(string(conf), -1)
	if len(servers) != 7 {
		t.Errorf("nginx.conf names %d servers, want the replicas twice, and the page", len(servers))
	}
	for _, server := range servers {
		if _, ok := project.Services[server[1]]; !ok {
			t.Errorf("nginx.conf names %s, which is no service", server[1])
		}
		if !slices.Contains(strings.Fields(server[2]), "resolve") {
			t.Errorf("%s is looked up only when nginx starts", server[1])
		}
	}
	if !regexp.MustCompile(`(?m)^\s+resolver 127\.0\.0\.11 .*valid=1s`).Match(conf) {
		t.Error("nginx.conf does not ask Docker's name server every second")
	}
	upstreams, zones := strings.Count(string(conf), "\n    upstream "), strings.Count(string(conf), "\n        zone ")
	if zones != upstreams || upstreams == 0 {
		t.Errorf("%d of %d upstreams of nginx.conf have a zone, which resolve needs", zones, upstreams)
	}
}

// TestOneImage checks that one image, built once, serves both the replicas and the page.
func TestOneImage(t *testing.T) {
	project := load(t, "GOPROXY=https://goproxy.example")
	builds := 0
	for _, name := range []string{"replica-1", "replica-2", "replica-3", "lab"} {
		s := project.Services[name]
		if s.Image != "oversell" {
			t.Errorf("%s runs %q, want oversell", name, s.Image)
		}
		if s.Build != nil {
			builds++
			if proxy := s.Build.Args["GOPROXY"]; proxy == nil || *proxy != "https://goproxy.example" {
				t.Errorf("the Go proxy does not reach the build of %s", name)
			}
		}
	}
	if builds != 1 {
		t.Errorf("oversell is built %d times, want once", builds)
	}
}

// TestReplicasCanDie: a replica kills itself at the failpoint die. Linux protects process 1 of a
// container from this, so an init process must be process 1.
func TestReplicasCanDie(t *testing.T) {
	for name, s := range load(t).Services {
		if !strings.HasPrefix(name, "replica-") {
			continue
		}
		if s.Init == nil || !*s.Init || s.Restart != types.RestartPolicyOnFailure {
			t.Errorf("%s: init %v, restart %q", name, s.Init, s.Restart)
		}
	}
}
