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
	return loadWith(t, nil, env...)
}

// loadWith also reads files that change docker-compose.yml, as `docker compose -f` does.
func loadWith(t *testing.T, changes []string, env ...string) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions(append([]string{"../../docker-compose.yml"}, changes...),
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

// TestMounts: a container's user may be unable to read a file of the checkout, after umask 077 or under SELinux. JMeter
// runs as the owner of its folder.
func TestMounts(t *testing.T) {
	for name, s := range load(t).Services {
		for _, v := range s.Volumes {
			if v.Type == types.VolumeTypeBind && name != "jmeter" {
				t.Errorf("%s mounts %s of the checkout: copy it in the Dockerfile", name, v.Source)
			}
		}
	}
}

// TestTopologies checks the files for Sentinel and for a cluster. They only add servers of Redis, which
// are as isolated as the others, and lead the replicas to them.
func TestTopologies(t *testing.T) {
	base := load(t)
	for _, test := range []struct {
		file, prefix string
		added        []string
		ready        []string // the services for which a replica waits
	}{
		{
			"sentinel.yml", "redis-sentinel://",
			[]string{"redis-master", "redis-replica-1", "redis-replica-2", "sentinel-1", "sentinel-2", "sentinel-3"},
			[]string{"sentinel-1", "sentinel-2", "sentinel-3"},
		},
		{
			"cluster.yml", "redis-cluster://",
			[]string{"redis-cluster", "redis-node-1", "redis-node-2", "redis-node-3", "redis-node-4", "redis-node-5", "redis-node-6"},
			[]string{"redis-cluster"},
		},
	} {
		t.Run(test.file, func(t *testing.T) {
			project := loadWith(t, []string{test.file})
			if got := len(project.Services) - len(base.Services); got != len(test.added) {
				t.Errorf("%d services more, want %d", got, len(test.added))
			}
			for _, name := range test.added {
				s, ok := project.Services[name]
				_, isolated := s.Networks["backends"]
				if !ok || len(s.Networks) != 1 || !isolated || len(s.Ports) > 0 || s.Image != base.Services["redis-1"].Image ||
					!s.ReadOnly || s.User != "redis" || !slices.Equal(s.CapDrop, []string{"ALL"}) || len(s.SecurityOpt) != 1 {
					t.Errorf("%s is missing, or is not as isolated as redis-1: %+v", name, s)
				}
				if h := s.HealthCheck; h == nil || h.Interval == nil || time.Duration(*h.Interval) < 10*time.Second || h.StartInterval == nil {
					t.Errorf("%s has no health check, or one that costs too much: %+v", name, h)
				}
			}
			for _, name := range []string{"replica-1", "replica-2", "replica-3"} {
				s, before := project.Services[name], base.Services[name]
				url := s.Environment["REDIS_URL"]
				if url == nil || !strings.HasPrefix(*url, test.prefix) {
					t.Fatalf("%s has no %s", name, test.prefix)
				}
				hosts := regexp.MustCompile(`([a-z0-9-]+):\d+`).FindAllStringSubmatch(*url, -1)
				if len(hosts) < 3 {
					t.Errorf("%s reaches %d servers: %s", name, len(hosts), *url)
				}
				for _, host := range hosts {
					if !slices.Contains(test.added, host[1]) {
						t.Errorf("%s names %s, which is no service of %s", *url, host[1], test.file)
					}
				}
				for _, other := range test.ready {
					if d := s.DependsOn[other]; d.Condition != types.ServiceConditionHealthy || !d.Required {
						t.Errorf("%s does not wait until %s is healthy: %+v", name, other, s.DependsOn[other])
					}
				}
				if len(s.DependsOn) != len(before.DependsOn)+len(test.ready) || len(s.Environment) != len(before.Environment) || s.Image != before.Image {
					t.Errorf("%s lost a part of docker-compose.yml: %+v", name, s)
				}
			}
		})
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

// TestPublished checks the file that publishes the servers: at their usual ports, on loopback only. It changes nothing
// else, and the containers stay on the internal network.
func TestPublished(t *testing.T) {
	base := load(t)
	tests := []struct {
		name string
		env  []string
		want map[string]string
	}{
		{"as documented", nil, map[string]string{
			"mysql": "3306", "redis-1": "6379", "redis-2": "6380", "redis-3": "6381", "redis-4": "6382", "redis-5": "6383",
			"zookeeper": "2181", "etcd": "2379", "nginx": "8080", "replica-1": "8000", "replica-2": "8100", "replica-3": "8200",
		}},
		{"chosen", []string{"MYSQL_PORT=13306", "REDIS_1_PORT=16379", "REDIS_5_PORT=16383", "ZK_PORT=12181", "ETCD_PORT=12379"}, map[string]string{
			"mysql": "13306", "redis-1": "16379", "redis-2": "6380", "redis-3": "6381", "redis-4": "6382", "redis-5": "16383",
			"zookeeper": "12181", "etcd": "12379", "nginx": "8080", "replica-1": "8000", "replica-2": "8100", "replica-3": "8200",
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			project := loadWith(t, []string{"ports.yml"}, test.env...)
			got := published(project)
			for service, port := range test.want {
				if got[service] != "127.0.0.1:"+port {
					t.Errorf("%s is published on %q, want %s on loopback", service, got[service], port)
				}
			}
			if len(got) != len(test.want) || len(project.Services) != len(base.Services) {
				t.Errorf("published: %v, of %d services", got, len(project.Services))
			}
			for name, s := range project.Services {
				before := base.Services[name]
				_, internal := s.Networks["backends"]
				_, outside := s.Networks["published"]
				_, wasInternal := before.Networks["backends"]
				isServer := wasInternal && !strings.HasPrefix(name, "replica-")
				if internal != wasInternal || outside != isServer || s.ReadOnly != before.ReadOnly || s.User != before.User ||
					s.Image != before.Image || !slices.Equal(s.Command, before.Command) || !slices.Equal(s.CapDrop, before.CapDrop) {
					t.Errorf("%s lost a part of docker-compose.yml, or has the wrong networks: %+v", name, s)
				}
			}
			if project.Networks["published"].Internal {
				t.Error("Docker publishes no ports of an internal network")
			}
			if env := project.Services["mysql"].Environment; *env["MYSQL_RANDOM_ROOT_PASSWORD"] != "" || *env["MYSQL_ROOT_PASSWORD"] != *env["MYSQL_PASSWORD"] {
				t.Errorf("root has another password than oversell, so a student cannot create the database test: %v", env)
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
	conf, err := os.ReadFile("../../nginx/nginx.conf")
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
