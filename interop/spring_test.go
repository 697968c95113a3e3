package interop

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"oversell/lab/rig"
)

// TestSpring sells through the shop of the folder spring, with Spring Boot, Redisson and Curator of today, from the
// servers of a lab with --ports fixed. It changes nothing in the shop: the password in its application.yml is the lab's.
func TestSpring(t *testing.T) {
	shop := startShop(t, startLab(t))
	const clients, each = 8, 25
	for _, lock := range []string{"redisson", "curator"} {
		before := shop.count(t)
		shop.sell(t, lock, clients, each)
		if sold := before - shop.count(t); sold != clients*each {
			t.Errorf("%s: %d sold, and %d taken from the row", lock, clients*each, sold)
		}
	}
	// This proves that the locks were needed.
	soon(t, "an update is lost without a lock", func() bool {
		before := shop.count(t)
		shop.sell(t, "none", clients, each)
		return before-shop.count(t) < clients*each
	})
}

// startLab starts a lab with --ports fixed. If another program of this machine has one of the ports, the lab has others,
// and startLab returns the variables that name them to the shop.
func startLab(t *testing.T) (env []string) {
	t.Helper()
	_, err := runLab(t, "--ports", "fixed", "--login", "root:root")
	if err == nil {
		return nil
	}
	if !strings.Contains(err.Error(), "is in use by ") {
		t.Fatal(err)
	}
	t.Log(err)
	addrs, err := runLab(t, "--login", "root:root")
	if err != nil {
		t.Fatal(err)
	}
	port := regexp.MustCompile(`:(\d+)[)/]`)
	return []string{
		"SPRING_DATASOURCE_URL=jdbc:mysql://127.0.0.1:" + port.FindStringSubmatch(addrs.MySQL)[1] + "/test?createDatabaseIfNotExist=true&allowPublicKeyRetrieval=true",
		"SPRING_DATA_REDIS_PORT=" + port.FindStringSubmatch(addrs.Redis[0])[1], "ZOOKEEPER=" + addrs.Zookeeper[0],
	}
}

// runLab starts `oversell lab`, which ends with the test. Its error has what the lab has printed.
func runLab(t *testing.T, flags ...string) (addrs rig.Addresses, err error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "lab.json")
	var out bytes.Buffer
	lab := exec.Command("../bin/oversell", append([]string{"lab", "--replicas", "1", "--json", file}, flags...)...)
	lab.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	lab.Stderr = &out
	if err := lab.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = lab.Wait() }()
	t.Cleanup(func() {
		_ = lab.Process.Signal(syscall.SIGTERM)
		<-ended
	})
	soon(t, "the lab starts, or ends", func() bool {
		select {
		case <-ended:
			err = errors.New(out.String())
			return true
		default:
			addrs, err = rig.ReadAddresses(file)
			return err == nil
		}
	})
	return addrs, err
}

// shop is the running program, at this address.
type shop string

// log is what the program has printed.
type log struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (l *log) Write(text []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.Write(text)
}

func (l *log) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.String()
}

// startShop starts the program on a free port.
func startShop(t *testing.T, env []string) shop {
	t.Helper()
	jar := filepath.Join("spring", "target", "shop.jar")
	if _, err := os.Stat(jar); err != nil {
		t.Fatalf("the shop is not built; build it with make interop, which needs Maven and a JDK: %v", err)
	}
	out := &log{}
	program := exec.Command(javaProgram(), append(javaOptions(), "-jar", jar, "--server.port=0")...)
	program.Env = append(os.Environ(), env...)
	program.Stdout, program.Stderr = out, out
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = program.Wait() }()
	t.Cleanup(func() {
		_ = program.Process.Signal(syscall.SIGTERM)
		<-ended
		if t.Failed() {
			t.Log(out.String())
		}
	})
	var at shop
	soon(t, "the shop starts", func() bool {
		select {
		case <-ended:
			t.Fatal("the shop has ended")
		default:
		}
		port := regexp.MustCompile(`Tomcat started on port (\d+)`).FindStringSubmatch(out.String())
		if port == nil {
			return false
		}
		at = shop("http://127.0.0.1:" + port[1])
		return true
	})
	return at
}

func (s shop) get(path string) (string, error) {
	answer, err := http.Get(string(s) + path)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", path, answer.Status, text)
	}
	return string(text), err
}

// sell sells under a lock, with clients that each send a number of requests.
func (s shop) sell(t *testing.T, lock string, clients, each int) {
	t.Helper()
	var selling sync.WaitGroup
	for range clients {
		selling.Go(func() {
			for range each {
				if answer, err := s.get("/check/lock?lock=" + lock); err != nil || answer != "sold with "+lock {
					t.Errorf("%q, %v", answer, err)
					return
				}
			}
		})
	}
	selling.Wait()
}

func (s shop) count(t *testing.T) int {
	t.Helper()
	answer, err := s.get("/stock")
	var count int
	if err != nil || !scan(answer, "%d", &count) {
		t.Fatalf("the stock is %q, %v", answer, err)
	}
	return count
}
