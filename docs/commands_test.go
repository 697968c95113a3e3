package docs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"oversell/trial/grade"
)

// runner says what runs a command of the documents. If file is empty, make commands runs the
// command: bin/oversell in a temporary folder, and all other programs in the repository.
type runner struct {
	lab  bool // needs the address and the token of a running lab
	slow bool // takes minutes, so only make commands ALL=1 runs it
	// file is a test or script that already runs the command. as is the command's text in this
	// file.
	file, as string
}

// runners returns a runner for every command in the sh blocks of the documents. The keys are the
// commands, without their comments.
func runners() map[string]runner {
	quick, lab, slow := runner{}, runner{lab: true}, runner{slow: true}
	docker := func(as string) runner { return runner{file: "deploy/docker/test.sh", as: as} }
	// There is no cluster: this test builds and checks what the commands apply or name.
	kubernetes := func(as string) runner { return runner{file: "deploy/manifests_test.go", as: as} }
	plans := runner{file: "jmeter/pom.xml", as: "<plan>*.jmx</plan>"}
	nightly := func(as string) runner { return runner{file: "tools/nightly.sh", as: as} }
	all := map[string]runner{
		"make lab":                                              {file: "cli/lab_command_test.go", as: `"lab"`},
		"bin/oversell lab --redis sentinel":                     {file: "cli/topologies_test.go", as: `"--redis sentinel"`},
		"bin/oversell lab --redis cluster":                      {file: "cli/topologies_test.go", as: `"--redis cluster"`},
		"bin/oversell lab --mysql galera":                       {file: "cli/topologies_test.go", as: `"--mysql galera`},
		"bin/oversell lab --ports fixed --open":                 {file: "cli/student_test.go", as: `"--ports", "fixed", "--open"`},
		"bin/oversell lab --ports fixed --login root:root":      {file: "interop/spring_test.go", as: `"--ports", "fixed", "--login", "root:root"`},
		"mvn -q -f interop/spring package":                      {file: "Makefile", as: "-f spring clean package"},
		"java -jar interop/spring/target/shop.jar":              {file: "interop/spring_test.go", as: `"shop.jar"`},
		"curl 'http://127.0.0.1:9000/check/lock?lock=redisson'": {file: "interop/spring_test.go", as: `"redisson", "curator"`},
		"curl 'http://127.0.0.1:9000/check/lock?lock=curator'":  {file: "interop/spring_test.go", as: `"redisson", "curator"`},
		"bin/oversell lab --zookeeper 3 --etcd 3":               {file: "cli/topologies_test.go", as: `"--zookeeper 3 --etcd 3"`},
		"make observe":                 {file: "cli/lab_command_test.go", as: `"--metrics", "--traces", traces`},
		"make test":                    {file: ".ci/run", as: "make test\n"},
		"make check":                   {file: "Makefile", as: "check: test lint vet"},
		"make nightly":                 {file: "Makefile", as: "tools/nightly.sh"},
		"make uninstall":               {file: "lab/rig/packages_test.go", as: `"uninstall.sh"`},
		"make test-mysql":              {file: ".ci/run", as: "test-mysql lint vet"},
		"bin/oversell lab --lease 30s": {file: "cli/lab_command_test.go", as: `"--lease", "30s"`},
		"OVERSELL_NIGHTLY=1 go test -tags nomsgpack ./locks/catalog -run 'TestConformance/atomic$'":  quick,
		"go test -tags nomsgpack ./lab/experiment -run 'TestWords|TestAll$|TestEveryHazard/^pause$'": quick,
		"go test -tags nomsgpack ./dash -run 'TestPages|TestWhoMayStart'":                            slow,
		"make course lesson=13-leases": slow, "go test -tags nomsgpack ./docs ./lab/course": quick, "go test -tags nomsgpack ./cli -run TestCourseNames": quick,
		"go test -tags nomsgpack ./dash -run 'TestCourse/13-leases'":       slow,
		`PATH="$(tools/real-mysql.sh mysql):$PATH" bin/oversell run --all`: slow,

		"make up": docker("deploy/docker/up.sh"),
		"docker compose -f docker-compose.yml -f deploy/docker/sentinel.yml up --build --wait": docker("COMPOSE_FILE=docker-compose.yml:deploy/docker/sentinel.yml"),
		"docker compose -f docker-compose.yml -f deploy/docker/cluster.yml up --build --wait":  docker("COMPOSE_FILE=docker-compose.yml:deploy/docker/cluster.yml"),
		"docker compose -f docker-compose.yml -f deploy/docker/ports.yml up --build --wait":    docker("COMPOSE_FILE=docker-compose.yml:deploy/docker/ports.yml"),
		"docker compose down --volumes":                                               docker("docker compose --profile jmeter down --volumes"),
		"docker compose exec lab /oversell run --target http://nginx:8080 none redis": docker("docker compose exec -T lab /oversell run --target http://nginx:8080"),
		"docker compose --profile jmeter run --rm jmeter":                             docker("docker compose --profile jmeter run --rm -T jmeter"),

		"docker compose exec mysql sh -c 'MYSQL_PWD=$MYSQL_PASSWORD mysql -u oversell oversell'": docker("docker compose exec -T mysql sh -c 'MYSQL_PWD=$MYSQL_PASSWORD mysql -u oversell oversell"),
		"docker compose exec redis-1 redis-cli":                                                  docker("docker compose exec -T redis-1 redis-cli"),
		"docker compose exec zookeeper zkCli.sh":                                                 docker("docker compose exec -T zookeeper zkCli.sh"),
		"docker compose exec etcd etcdctl get --prefix /":                                        docker("docker compose exec -T etcd etcdctl get --prefix /"),

		"docker build -t oversell .":                                                     {file: "Dockerfile", as: "docker build -t oversell ."},
		"kubectl apply -k deploy/kubernetes/classroom":                                   kubernetes(`const overlay = "classroom"`),
		"kubectl delete -k deploy/kubernetes/classroom":                                  kubernetes(`const overlay = "classroom"`),
		"kubectl --namespace oversell-classroom rollout status deployment/oversell":      kubernetes(`deployments["oversell"]`),
		"kubectl --namespace oversell-classroom port-forward service/oversell 8080:8000": kubernetes(`services["oversell"]`),
		"kubectl apply -k deploy/kubernetes/load":                                        kubernetes(`build(t, "load")`),
		"kubectl --namespace oversell-classroom logs --follow job/load":                  kubernetes(`jobs["load"]`),

		// This client is not installed on every machine.
		"bin/oversell etcdctl get --prefix /": {file: "cli/lab_command_test.go", as: `"etcdctl get --prefix /"`},

		// make jmeter also runs the JMeter plans in these commands, on one machine.
		"jmeter-server -Djava.rmi.server.hostname=load1":                                                    plans,
		"jmeter -n -t jmeter/check-lock.jmx -l all.jtl -R load1,load2 -Ghost=lab -Gthreads=25 -Gshare=true": plans,
		"grep -c '^[0-9]*,[0-9]*,redis,200,' all.jtl":                                                       plans,
		"jmeter -t jmeter/compare.jmx -Jtoken=TOKEN":                                                        plans,
		"jmeter -n -t jmeter/check-lock.jmx -l redis.jtl -Jport=8080 -Jstrategy=redis -Jtoken=TOKEN":        plans,
	}
	for command, r := range map[string]runner{
		"bin/oversell strategies":       quick,
		"bin/oversell strategies redis": quick,

		"bin/oversell break pause --show":                                                 quick,
		"bin/oversell break --plan 'A sells at read, B sells, A resumes' none for-update": quick,

		"bin/oversell run none redis --clients 50":                                      quick,
		"bin/oversell run mutex --replicas 1":                                           quick,
		"bin/oversell run for-update redis --clients 20 --loops 10 --delay 1ms --fsync": quick,
		"bin/oversell run atomic combining --clients 20 --loops 10 --disk 2ms":          quick,
		"bin/oversell run atomic":                                                       quick,
		"bin/oversell run zk --clients 20 --loops 10 --stock 500 --hold 20ms":           quick,
		"bin/oversell run redis --json redis.json --csv redis.csv --html redis.html":    quick,
		"bin/oversell run for-update --rate 400/s --clients 50 --loops 40":              quick,
		"bin/oversell run version --sweep clients=1..500 --html curve.html":             slow,
		"bin/oversell run --all":                                                        slow,
		"bin/oversell compare redis redlock --within 10%":                               slow,
		"bin/oversell compare redis 'redis?hold=1ms' --json hold.json":                  slow,
		"bin/oversell compare bin/old bin/oversell --strategy for-update":               {file: "cli/compare_test.go", as: `"compare", built(), relative, "--strategy"`},
		"bin/oversell run --rolling-restart":                                            slow,
		"bin/oversell run redis zk --rolling-restart --loops 10":                        quick,
		"bin/oversell run --all --rolling-restart":                                      slow,
		"bin/oversell run coupon":                                                       slow,
		"bin/oversell run recharge --guard none,key":                                    quick,
		"bin/oversell run tickets":                                                      slow,
		"bin/oversell run flash":                                                        slow,
		"bin/oversell run grain":                                                        slow,

		"bin/oversell break pause redis":                            quick,
		"bin/oversell break pause redis --fenced":                   quick,
		"bin/oversell break pause atomic":                           quick,
		"bin/oversell break pause redis for-update --seeds 20":      slow,
		"bin/oversell break crash":                                  slow,
		"bin/oversell chaos redis zk --for 10m":                     slow,
		"bin/oversell chaos semaphore:redis read-write:zk --for 5m": slow,
		"bin/oversell step none":                                    quick,
		"bin/oversell step redis-lua --keys 'aaaa bb'":              quick,
		"bin/oversell step mutex --solution":                        quick,
		"bin/oversell explore redis-lua --pauses 1":                 quick,
		"bin/oversell explore zk --expiries 1":                      quick,
		"bin/oversell explore none --full":                          quick,

		"bin/oversell explore --go adapters/examples/schedules redsync --lost-replies 1": slow,

		"bin/oversell contract -- python3 adapters/examples/lock.py":                   quick,
		"bin/oversell judge --hazard pause,crash -- python3 adapters/examples/lock.py": quick,
		"make adapters": slow, "bin/oversell judge -- bin/adapter-redsync": slow,
		"make incidents":         nightly(`incidents | libraries) make "$1" SEEDS=1`),
		"make libraries SEEDS=1": nightly(`incidents | libraries) make "$1" SEEDS=1`),
		"bin/oversell judge -- python3 adapters/examples/lock.py": slow,

		"bin/oversell grade": quick,
		"bin/oversell grade 3 --html grade.html --json grade.json -- ./my-lock": {file: "cli/grade_test.go", as: `"grade"`},

		"bin/oversell exercise":                         quick,
		"bin/oversell exercise isolation":               quick,
		"LANG=zh_CN.UTF-8 bin/oversell exercise znodes": quick,

		"bin/oversell exercise redis-multi --lab running": lab,
		"bin/oversell mysql":                              lab,
		"bin/oversell mysql -e 'SELECT * FROM db_stock'":  lab,
		"bin/oversell redis-cli KEYS '*'":                 lab,
		"bin/oversell zkcli ls /":                         lab,
		"bin/oversell settings":                           lab,
		"bin/oversell settings spring":                    lab,

		"bin/oversell run --target http://127.0.0.1:8080 --token TOKEN none redis":       lab,
		"curl 'http://127.0.0.1:8080/check/lock?strategy=redis'":                         lab,
		"curl http://127.0.0.1:8080/stock/1":                                             lab,
		"curl -X PUT -H 'X-Lab-Token: TOKEN' 'http://127.0.0.1:8080/stock/1?count=5000'": lab,
		"curl 'http://127.0.0.1:8080/check/lock?strategy=zk'":                            lab,
		"curl 'http://127.0.0.1:8080/test/semaphore?permits=3&hold=1s'":                  lab,
		"curl 'http://127.0.0.1:8080/test/counter?op=increment&backend=zk'":              lab,

		"curl 'http://127.0.0.1:8080/test/write?then=read&downgrade=true&hold=2s'": lab,
		"curl 'http://127.0.0.1:8080/test/lock?strategy=redis&owner=A'":            lab,
		"curl 'http://127.0.0.1:8080/test/unlock?strategy=redis&owner=A'":          lab,
		"curl 'http://127.0.0.1:8080/test/lock?strategy=redis&owner=A&lease=2s'":   lab,
		"curl 'http://127.0.0.1:8080/test/lock?owner=B&wait=100s&lease=2s'":        lab,

		"curl 'http://127.0.0.1:8080/test/lock?strategy=redis-multi&owner=A&name=stock&also=order,coupon'": lab,
		"curl 'http://127.0.0.1:8080/test/unlock?strategy=redis-multi&owner=A&name=stock'":                 lab,
		// The reset before each command deletes these locks, so their unlock needs a test of its own.
		"curl 'http://127.0.0.1:8080/test/write/lock?owner=B&lease=2s'":         lab,
		"curl 'http://127.0.0.1:8080/test/read/lock?owner=A'":                   lab,
		"curl 'http://127.0.0.1:8080/test/read/unlock?owner=A'":                 {file: "handlers/by_hand_test.go", as: `"read/unlock"`},
		"curl 'http://127.0.0.1:8080/test/write/lock?owner=A'":                  lab,
		"curl 'http://127.0.0.1:8080/test/write/unlock?owner=A'":                {file: "handlers/by_hand_test.go", as: `"write/unlock"`},
		"curl 'http://127.0.0.1:8080/test/semaphore/acquire?owner=A&permits=3'": lab,
		"curl 'http://127.0.0.1:8080/test/semaphore/release?owner=A'":           {file: "handlers/by_hand_test.go", as: `path("release"`},
		"make site": slow, "bin/oversell site results/site": {file: "cli/site_test.go", as: `"site", folder`},
		"make steps strategy=redis": slow, "make timelines": {file: "Makefile", as: "$(GENERATE) runs results/break"},
		"make databases SEEDS=1": nightly("make databases SEEDS=1"),

		"make build": quick, "make docs": quick, "make fmt": slow, "make demo": slow,
		"make break SEEDS=1": nightly("make break SEEDS=1"), "make claims strategy=atomic": slow, "make explored strategy=atomic": slow, "make steps strategy=atomic": slow, "make chaos FOR=1m": nightly(" chaos "),
		"make scenarios": nightly(" scenarios "), "make interop": nightly(" interop "),
		"make jmeter": slow, "make jmeter plan=check-lock.jmx strategy=zk threads=50": slow,
		"make jmeter plan=coupon.jmx guard=none": slow, "make jmeter plan=semaphore.jmx backend=zk": slow,
		"make bench": slow, "make durability": slow, "make waiters": slow, "cd bench && go run . -only locks -rounds 6": slow,
		"cd bench && go run . -only traces -o ''": slow,
	} {
		all[command] = r
	}
	for n := range grade.Exercises() {
		all[fmt.Sprintf("bin/oversell grade %d -- python3 my-lock.py", n+1)] = runner{file: "cli/grade_test.go", as: `"grade"`}
	}
	return all
}

var (
	shBlock = regexp.MustCompile("(?ms)^ *```sh\n(.*?)^ *```$")
	comment = regexp.MustCompile(`\s+#.*$`)
)

// commands returns the commands in the sh blocks of a document, in the document's order.
func commands(text string) (all []string) {
	for _, block := range shBlock.FindAllStringSubmatch(text, -1) {
		for _, line := range strings.Split(block[1], "\n") {
			if line = strings.TrimSpace(comment.ReplaceAllString(line, "")); line != "" {
				all = append(all, line)
			}
		}
	}
	return all
}

// TestCommandsHaveRunners checks that every command in the documents has a runner, and that every
// runner's command is in a document.
func TestCommandsHaveRunners(t *testing.T) {
	t.Parallel()
	unused := runners()
	for _, file := range documents(t) {
		for _, command := range commands(read(t, file)) {
			r, ok := runners()[command]
			if !ok {
				t.Errorf("%s: the command `%s` has no runner: add one to docs/commands_test.go", file, command)
				continue
			}
			delete(unused, command)
			if r.file != "" && !strings.Contains(read(t, r.file), r.as) {
				t.Errorf("%s: `%s` should be run by %s, which has no %q", file, command, r.file, r.as)
			}
		}
	}
	for command := range unused {
		t.Errorf("docs/commands_test.go has a runner for `%s`, which is in no document: remove it", command)
	}
	got := commands("```sh\nmake x   # builds x\n\ncurl 'http://host/#a'\n```\n```\nno command\n```\n   ```sh\n   make y\n   ```\n")
	if want := []string{"make x", "curl 'http://host/#a'", "make y"}; !slices.Equal(got, want) {
		t.Errorf("commands = %q, want %q", got, want)
	}
}

// TestCommands runs the commands of the documents one by one. The environment variable
// OVERSELL_COMMANDS is quick, or all to include slow commands. COMMANDS_MATCHING is a regular
// expression that selects commands.
func TestCommands(t *testing.T) {
	which := os.Getenv("OVERSELL_COMMANDS")
	if which == "" {
		t.Skip("make commands runs them")
	}
	chosen, err := regexp.Compile(os.Getenv("COMMANDS_MATCHING"))
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	var target, token string
	for _, command := range slices.Sorted(maps.Keys(runners())) {
		r := runners()[command]
		if r.file != "" || r.slow && which != "all" || !chosen.MatchString(command) {
			continue
		}
		if r.lab && target == "" {
			target, token = startLab(t, root)
		}
		t.Run(command, func(t *testing.T) {
			line := strings.NewReplacer("http://127.0.0.1:8080", target, "TOKEN", token, "curl ", "curl --fail --silent --show-error ").Replace(command)
			if r.lab {
				refill(t, target, token) // an earlier command may have sold all
			} else {
				line = command
			}
			cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
			cmd.Dir = root
			if strings.HasPrefix(command, "bin/") || strings.Contains(command, " bin/") {
				cmd.Dir = t.TempDir() // for the files that the command writes
				for _, folder := range []string{"bin", "adapters"} {
					if err := os.Symlink(filepath.Join(root, folder), filepath.Join(cmd.Dir, folder)); err != nil {
						t.Fatal(err)
					}
				}
			}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v:\n%s", err, out)
			}
		})
	}
}

func refill(t *testing.T, target, token string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, target+"/stock/1?count=5000", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Lab-Token", token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		t.Fatalf("the stock was not reset: %s", res.Status)
	}
}

// startLab starts a lab as make lab does, and returns the lab's address and token. It ends the lab
// when the test ends.
func startLab(t *testing.T, root string) (target, token string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "lab.json")
	lab := exec.CommandContext(context.WithoutCancel(t.Context()), filepath.Join(root, "bin", "oversell"), "lab", "--json", file)
	if err := lab.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = lab.Process.Signal(syscall.SIGTERM)
		_ = lab.Wait()
	})
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		var at struct{ Target, Token string }
		if err := json.Unmarshal(text, &at); err != nil {
			t.Fatal(err)
		}
		return at.Target, at.Token
	}
	t.Fatal("the lab is not ready after five minutes")
	return "", ""
}
