package interop

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// worker is the running Java program. It answers each input line with one line.
type worker struct {
	process *exec.Cmd
	in      io.WriteCloser
	lines   chan string
	ended   chan struct{} // closed when the program has ended; err is its error
	err     error
}

// startWorker starts the Java program, and returns when the program has connected to the lock's
// server. versions is a profile of pom.xml. lease is the lease of the program's locks, or the
// time-out of its session.
func startWorker(t *testing.T, versions string, s side, lease time.Duration) *worker {
	t.Helper()
	target := filepath.Join("target", versions)
	classes, jars := filepath.Join(target, "classes"), filepath.Join(target, "lib")
	for _, dir := range []string{classes, jars} {
		if _, err := os.Stat(dir); err != nil {
			t.Fatalf("the Java program is not built; build it with make interop, which needs Maven and a JDK: %v", err)
		}
	}
	c := exec.Command(javaProgram(), append(javaOptions(),
		"-cp", classes+string(os.PathListSeparator)+filepath.Join(jars, "*"),
		"oversell.interop.Worker", s.strategy, millis(lease))...)
	// Passwords are in the environment, because other users can read a command line.
	c.Env = append(os.Environ(), "SERVER="+s.address, "JDBC_URL="+jdbc(t))
	c.Stderr = t.Output()
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	w := &worker{process: c, in: in, lines: make(chan string, 16), ended: make(chan struct{})}
	go w.listen(out)
	t.Cleanup(w.close)
	hello := w.answer(t)
	library, ok := strings.CutPrefix(hello, "ready ")
	if !ok {
		t.Fatalf("the Java program answers %q, want ready", hello)
	}
	t.Log(library)
	return w
}

// javaProgram returns the path of java, chosen as in lab/rig/servers.sh and java.sh.
func javaProgram() string {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		return filepath.Join(home, "bin", "java")
	}
	return "java"
}

// javaOptions returns options that reduce the memory and the start-up time of Java.
func javaOptions() []string {
	return []string{"-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Djava.awt.headless=true"}
}

// jdbc returns the address of the database for the Java driver.
func jdbc(t *testing.T) string {
	t.Helper()
	dsn, err := mysql.ParseDSN(servers.Addresses().MySQL)
	if err != nil {
		t.Fatal(err)
	}
	return "jdbc:mariadb://" + dsn.Addr + "/" + dsn.DBName + "?user=" + dsn.User + "&password=" + dsn.Passwd +
		"&allowPublicKeyRetrieval=true" // for MySQL, which requires an encrypted password
}

func (w *worker) listen(out io.Reader) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		w.lines <- lines.Text()
	}
	w.err = w.process.Wait()
	close(w.ended)
	close(w.lines)
}

// send sends a command to the program. The next answer belongs to this command.
func (w *worker) send(t *testing.T, command ...string) {
	t.Helper()
	if _, err := io.WriteString(w.in, strings.Join(command, " ")+"\n"); err != nil {
		t.Fatalf("send %v to the Java program: %v", command, err)
	}
}

func (w *worker) answer(t *testing.T) string {
	t.Helper()
	select {
	case line, ok := <-w.lines:
		if !ok {
			t.Fatalf("the Java program has ended: %v", w.err)
		}
		return line
	case <-time.After(2 * longWait):
		t.Fatal("the Java program does not answer")
	}
	return ""
}

// want sends a command to the program and checks its answer.
func (w *worker) want(t *testing.T, answer string, command ...string) {
	t.Helper()
	w.send(t, command...)
	w.wantAnswer(t, answer, command...)
}

func (w *worker) wantAnswer(t *testing.T, want string, command ...string) {
	t.Helper()
	if got := w.answer(t); got != want {
		t.Fatalf("Java, %s: want %s, got %s", strings.Join(command, " "), want, got)
	}
}

// acquire waits until the Java program has the lock.
func (w *worker) acquire(t *testing.T, key string) {
	t.Helper()
	w.want(t, "granted", "acquire", key, millis(longWait))
}

// kill sends SIGKILL to the program, and returns when the program has ended.
func (w *worker) kill(t *testing.T) {
	t.Helper()
	if err := w.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for range w.lines { //nolint:revive // until the channel is closed
	}
}

// close closes the program's input, and kills the program if it does not end.
func (w *worker) close() {
	_ = w.in.Close()
	go func() {
		for range w.lines { //nolint:revive // so that the program does not block on its output
		}
	}()
	select {
	case <-w.ended:
	case <-time.After(20 * time.Second):
		_ = w.process.Process.Kill()
		<-w.ended
	}
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
