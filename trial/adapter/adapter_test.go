package adapter_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"oversell/api"
	"oversell/locks"
	"oversell/locks/local"
	"oversell/stock"
	"oversell/trial/adapter"
)

// serveEnv makes the test binary a program that serves a mutex of its own.
const serveEnv = "OVERSELL_ADAPTER_SERVES"

// patience is far longer than a busy machine needs.
const patience = 2 * time.Minute

func TestMain(m *testing.M) {
	if os.Getenv(serveEnv) != "" {
		mutex := tracing{local.Mutex()}
		if err := adapter.Serve(context.Background(), os.Stdin, os.Stdout, adapter.HelloOf(mutex.Card(), "test", true), mutex); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// tracing is a Locker with a step before each grant.
type tracing struct{ locks.Locker }

func (l tracing) Acquire(ctx context.Context, r locks.Request) (*locks.Lock, error) {
	locks.Trace(ctx, api.Queued, r.Key, r.Owner, 0)
	locks.Trace(ctx, "thinking", r.Key, r.Owner, 0)
	return l.Locker.Acquire(ctx, r)
}

const hello = `echo '{"hello":1,"library":"made-up","version":"1","language":"sh","backends":["redis"],"capabilities":{"lease":true,"loss_notice":true}}';`

// logged is the standard error of a program.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

// await waits until the log contains text.
func (l *logged) await(t *testing.T, text string) {
	t.Helper()
	eventually(t, "the log contains "+text, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return strings.Contains(l.text.String(), text)
	})
}

func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// start starts a script in a process group of its own, after a hello.
func start(t *testing.T, script string) (*adapter.Adapter, *logged) {
	t.Helper()
	log := &logged{}
	a, err := adapter.Start(t.Context(), inGroup(hello+script), log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a, log
}

func inGroup(script string) func() *exec.Cmd {
	return func() *exec.Cmd {
		cmd := adapter.Shell(script, "", nil)()
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		return cmd
	}
}

var request = locks.Request{Key: "k", Owner: "o", Wait: 10 * time.Second} //nolint:gochecknoglobals // constant

func TestBadStarts(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		`exit 3`:                           "the program has ended (exit status 3); its standard error is empty",
		`echo no server >&2; exit 1`:       "its standard error ends with:\n  no server",
		`echo hi; cat`:                     `line 1 of the program: "hi"`,
		`echo '{"hello":1'; cat`:           "the JSON object is not complete",
		`echo '{"hello":2}'; cat`:          `must have "hello":1`,
		`echo '{"hello":1}'; cat`:          "no library",
		`echo '{"hello":1} {}'; cat`:       "more than one JSON object",
		`echo '{"hello":1,"lib":""}'; cat`: `unknown field "lib"`,
		`head -c 70000 /dev/zero; cat`:     "line 1 of the program is longer than 65536 bytes",
		`exec >&-; sleep 30`:               "closed its standard output, but it still runs",
		`no-such-program`:                  "not found",
		`echo '{"hello":1,"library":"x","backends":["cassandra"]}'; cat`:                         `the backend "cassandra"`,
		`echo '{"hello":1,"library":"x","capabilities":{"renewal":true}}'; cat`:                  "renewal without lease",
		`echo '{"hello":1,"library":"x"}'; cat`:                                                  "no backends: name the servers of the lock, some of redis,",
		`echo '{"hello":1,"library":"x","backends":"redis"}'; cat`:                               "the field backends has a text, and must have a list",
		`echo '{"hello":1,"library":"x","backends":["redis"],"breaks":["pause"]}'; cat`:          "the field breaks has a text, and must have an object",
		`echo '{"hello":1,"library":"x","backends":["redis"],"capabilities":{"lease":1}}'; cat`:  "the field capabilities.lease has the number, and must have true or false",
		`echo '{"hello":1,"library":"x","backends":["redis"],"capabilities":{"poll":1.5}}'; cat`: "the field capabilities.poll has the number 1.5, and must have a whole number",
		`echo '{"hello":1,"library":"x","backends":["redis"],"capabilities":{"poll":-1}}'; cat`:  "not 0 to 60000 milliseconds",
		`sleep 60 & exit 4`: "exit status 4", // the child keeps the pipes open
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			a, err := adapter.Start(t.Context(), inGroup(script), nil)
			if err == nil {
				a.Close()
				t.Fatal("the program was accepted")
			}
			if !strings.Contains(err.Error(), want) {
				t.Errorf("got %v\nwant %s", err, want)
			}
		})
	}
}

func TestBadAnswers(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		`read a; echo nonsense; cat`:                                                   `line 2 of the program: "nonsense"`,
		`read a; echo '{"id":7,"answer":"granted"}'; cat`:                              "line 2 of the program: the answer \"granted\" has the id 7, and no request has this id",
		`read a; echo '{"id":1,"answer":"released"}'; cat`:                             `the answer "released" to acquire 1; possible are granted, not_acquired`,
		`read a; echo '{"id":1,"answer":"granted","fense":7}'; cat`:                    `unknown field "fense"`,
		`read a; echo '{"id":1,"answer":"error"}'; cat`:                                "has no why",
		`read a; yes '{"id":1,"answer":"queued"}'; cat`:                                "too many answers to acquire 1",
		`read a; head -c 10000000 /dev/zero | tr '\\0' x; cat`:                         "is longer than 65536 bytes",
		`read a; printf '{"id":1,"answer":"gra'; exit 7`:                               "the JSON object is not complete",
		`exec >&-; sleep 31415`:                                                        "closed its standard output",
		`read a; exit 5`:                                                               "the program has ended (exit status 5)",
		`read a; kill -9 $$`:                                                           "signal: killed",
		`read a; echo '{"id":1,"answer":"error","why":"no route"}'; cat`:               "no route",
		`read a; echo '{"id":1,"answer":"error","why":"\u001b[2Jno\u202eroute"}'; cat`: "\uFFFD[2Jno\uFFFDroute",
		`read a; printf '\033]0;title\007' >&2; exit 5`:                                "\uFFFD]0;title\uFFFD",
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			a, _ := start(t, script)
			_, err := a.Acquire(t.Context(), request)
			if !errors.Is(err, stock.ErrUnavailable) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v\nwant %s", err, want)
			}
		})
	}
}

func TestAnsweredTwice(t *testing.T) {
	t.Parallel()
	a, _ := start(t, `read a; echo '{"id":1,"answer":"granted"}'; echo '{"id":1,"answer":"granted"}'; cat >/dev/null`)
	h, err := a.Acquire(t.Context(), request)
	if err == nil { // the lock of a program that failed is lost
		<-h.Context().Done()
		err = h.Verify()
	}
	if err == nil || !strings.Contains(err.Error(), `line 3 of the program: the answer "granted" to request 1, which was answered before`) {
		t.Error(err)
	}
}

func TestRestart(t *testing.T) {
	t.Parallel()
	marker := t.TempDir() + "/marker"
	a, _ := start(t, `if [ -e `+marker+` ]; then read a; echo '{"id":1,"answer":"granted"}'; cat >&2; fi; touch `+marker+`; read a; exit 6`)
	if _, err := a.Acquire(t.Context(), request); err == nil || !strings.Contains(err.Error(), "exit status 6") {
		t.Fatalf("the first program: %v", err)
	}
	eventually(t, "a new program grants", func() bool {
		_, err := a.Acquire(t.Context(), request)
		return err == nil
	})
}

func TestLoss(t *testing.T) {
	t.Parallel()
	a, _ := start(t, `read a; echo '{"id":1,"answer":"granted","fence":7}'; echo '{"id":1,"answer":"lost","why":"the key is gone"}'
		read b; echo '{"id":2,"answer":"not_held"}'; cat >&2`)
	h, err := a.Acquire(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	<-h.Context().Done()
	if err := h.Verify(); !errors.Is(err, locks.ErrLost) || !strings.Contains(err.Error(), "the key is gone") {
		t.Errorf("verify: %v", err)
	}
	if err := h.Release(t.Context()); !errors.Is(err, locks.ErrNotHeld) {
		t.Errorf("release: %v, want ErrNotHeld", err)
	}
	if h.Fence() != 7 {
		t.Errorf("fence %d, want 7", h.Fence())
	}
}

func TestVerifyAsksTheProgram(t *testing.T) {
	t.Parallel()
	a, _ := start(t, `read a; echo '{"id":1,"answer":"granted"}'; read b; echo '{"id":2,"answer":"held"}'; read c; echo '{"id":3,"answer":"not_held"}'; cat >&2`)
	h, err := a.Acquire(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Verify(); err != nil {
		t.Errorf("a held lock: %v", err)
	}
	if err := h.Verify(); !errors.Is(err, locks.ErrLost) {
		t.Errorf("a lock that is not held: %v", err)
	}
}

func TestKilledProgram(t *testing.T) {
	t.Parallel()
	a, _ := start(t, `read a; echo '{"id":1,"answer":"granted"}'; sleep 0.1; kill -9 $$`)
	h, err := a.Acquire(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	<-h.Context().Done()
	if err := h.Verify(); !errors.Is(err, locks.ErrLost) || !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("the lock of a killed program: %v", err)
	}
}

// TestCancel checks that a cancelled acquire sends cancel, and that a late grant is released.
func TestCancel(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		"not_acquired": `{"do":"cancel","of":1}`,
		"granted":      `{"id":2,"do":"release","of":1,"key":"k","owner":"o"}`,
	} {
		t.Run(answer, func(t *testing.T) {
			t.Parallel()
			a, log := start(t, `read a; echo "$a" >&2; read b; echo "$b" >&2; echo '{"id":1,"answer":"`+answer+`"}'; read c; echo "$c" >&2; echo '{"id":2,"answer":"released"}'; cat >&2`)
			ctx, cancel := context.WithCancelCause(t.Context())
			left := errors.New("the client left")
			go func() {
				log.await(t, `{"id":1,"do":"acquire","key":"k","owner":"o","wait_ms":10000}`)
				cancel(left)
			}()
			if _, err := a.Acquire(ctx, request); !errors.Is(err, locks.ErrNotAcquired) || !errors.Is(err, left) {
				t.Errorf("the cancelled acquire: %v", err)
			}
			log.await(t, want)
		})
	}
}

// TestHung checks that a program that ignores cancel is ended.
func TestHung(t *testing.T) {
	t.Parallel()
	a, log := start(t, `while read a; do echo "$a" >&2; done`)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		log.await(t, "acquire")
		cancel()
	}()
	if _, err := a.Acquire(ctx, request); !errors.Is(err, locks.ErrNotAcquired) {
		t.Errorf("the cancelled acquire: %v", err)
	}
	r := request
	r.Wait = patience
	if _, err := a.Acquire(t.Context(), r); err == nil || !strings.Contains(err.Error(), "did not answer acquire 1 within") {
		t.Errorf("the request after it: %v", err)
	}
}

// TestTrySlowStart checks that a program may need seconds for its first lock, as Java does on a busy machine.
func TestTrySlowStart(t *testing.T) {
	t.Parallel()
	a, _ := start(t, `read a; sleep 7; echo '{"id":1,"answer":"granted"}'; read a; read a; echo '{"id":2,"answer":"released"}';
		read a; echo '{"id":3,"answer":"granted"}'; read a; echo '{"id":4,"answer":"released"}'; cat >/dev/null`)
	if err := a.Try(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestServe checks both sides of the protocol together.
func TestServe(t *testing.T) {
	t.Parallel()
	a := serving(t)
	var steps []api.Step
	traced := locks.WithTracer(t.Context(), func(_ context.Context, e api.Event) { steps = append(steps, e.Step) })
	h, err := a.Acquire(traced, request)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(steps); got != "[queued thinking]" {
		t.Errorf("steps %s", got)
	}
	now := request
	now.Wait = 0
	if _, err := a.Acquire(t.Context(), now); !errors.Is(err, locks.ErrNotAcquired) {
		t.Errorf("a held key: %v", err)
	}
	waiters := wait(t, a, 20)
	if err := h.Release(t.Context()); err != nil {
		t.Error(err)
	}
	waiters()
	if err := h.Release(t.Context()); !errors.Is(err, locks.ErrNotHeld) {
		t.Errorf("a second release: %v", err)
	}
	if err := a.Clear(t.Context(), "k"); err != nil {
		t.Error(err)
	}
}

// wait starts waiters. The function that it returns waits until each has held the lock.
func wait(t *testing.T, a *adapter.Adapter, waiters int) (all func()) {
	t.Helper()
	entered := 0 // written only by holders
	var running sync.WaitGroup
	for range waiters {
		running.Go(func() {
			r := request
			r.Wait = patience
			h, err := a.Acquire(t.Context(), r)
			if err != nil {
				t.Error(err)
				return
			}
			entered++
			if err := h.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	return func() {
		t.Helper()
		running.Wait()
		if entered != waiters {
			t.Errorf("%d of %d waiters entered", entered, waiters)
		}
	}
}

// TestCard checks the card of a hello.
func TestCard(t *testing.T) {
	t.Parallel()
	h := adapter.Hello{
		Hello: adapter.Version, Library: "lib", Version: "2", Language: "C", Backends: []string{"zookeeper"},
		Capabilities: adapter.Capabilities{Lease: true, Fence: true}, Breaks: []adapter.Break{{Hazard: api.Race}},
	}
	c := h.Card()
	if !c.Locker || c.Safe || !c.Unchecked || !c.Fenced || !c.BrokenBy(api.Race) || fmt.Sprint(c.Protects) != "[replica-race]" || fmt.Sprint(c.Backends) != "[mysql zookeeper]" {
		t.Errorf("card %+v", c)
	}
	again := adapter.HelloOf(c, "2", true)
	if fmt.Sprint(again.Backends) != "[zookeeper]" || !again.Capabilities.Fence || again.Capabilities.LossNotice {
		t.Errorf("hello %+v", again)
	}
}

// BenchmarkAdapter measures what the protocol adds to a request (an acquire and a release): the
// same lock, in turn behind the adapter and in this process. added-ms is the difference of medians.
func BenchmarkAdapter(b *testing.B) {
	a := serving(b)
	direct := tracing{local.Mutex()}
	var behind, inProcess []time.Duration
	for b.Loop() {
		behind = append(behind, once(b, a))
		inProcess = append(inProcess, once(b, direct))
	}
	b.ReportMetric(float64(median(behind)-median(inProcess))/float64(time.Millisecond), "added-ms")
}

func once(b *testing.B, l locks.Locker) time.Duration {
	b.Helper()
	began := time.Now()
	h, err := l.Acquire(b.Context(), request)
	if err == nil {
		err = h.Release(b.Context())
	}
	if err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// serving starts this test binary as a program that serves a mutex.
func serving(t testing.TB) *adapter.Adapter {
	t.Helper()
	a, err := adapter.Start(t.Context(), func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), serveEnv+"=1", "GORACE=halt_on_error=1 atexit_sleep_ms=0")
		return cmd
	}, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}
