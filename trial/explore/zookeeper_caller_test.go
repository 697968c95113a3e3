package explore

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"
)

// Time-outs of sessions. A test that ends a session by silence uses the shortest that the real server
// allows. Another test uses a long one, so that no session ends on a busy machine.
const (
	longSession  = 30 * time.Second
	shortSession = time.Second
	patience     = 2 * time.Minute // for what must happen; in memory, the clock of the bubble counts
)

// script is what the clients of one test do. It notes all answers, without what differs from run to
// run: zxids are replaced by their order, sessions by their client, and the folder is left out.
type script struct {
	t    *testing.T
	dial func() (net.Conn, error)
	dir  string

	mu       sync.Mutex
	lines    []string
	sessions map[int64]string
}

// inMemory runs a script on the server of this package.
func inMemory(t *testing.T, do func(*script)) (notes string) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1, 0)
		w.over = true // the network delivers at once
		stop := make(chan struct{})
		t.Cleanup(func() { close(stop) })
		go func() {
			for {
				select {
				case <-time.After(tick):
					w.mu.Lock()
					w.zk.expire(time.Now())
					w.mu.Unlock()
				case <-stop:
					return
				}
			}
		}()
		notes = runScript(t, func() (net.Conn, error) { return w.zk.dial(0) }, do)
	})
	return notes
}

// onServer runs a script on a real ZooKeeper.
func onServer(t *testing.T, addr string, do func(*script)) (notes string) {
	return runScript(t, func() (net.Conn, error) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}, do)
}

func runScript(t *testing.T, dial func() (net.Conn, error), do func(*script)) (notes string) {
	s := &script{t: t, dial: dial, dir: "/" + uuid.NewString(), sessions: map[int64]string{}}
	owner := s.client("", longSession)
	if _, err := owner.Create(s.dir, nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	do(s)
	return s.notes()
}

func (s *script) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

// notes returns the lines, with the zxids replaced: z1 is the lowest of them.
func (s *script) notes() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	pattern := regexp.MustCompile(`zxid\(\d+\)`)
	text := strings.ReplaceAll(strings.Join(s.lines, "\n"), s.dir+"/", "/")
	text = strings.ReplaceAll(text, s.dir, "/")
	seen := pattern.FindAllString(text, -1)
	slices.SortFunc(seen, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	seen = slices.Compact(seen)
	return pattern.ReplaceAllStringFunc(text, func(zxid string) string {
		return "z" + strconv.Itoa(slices.Index(seen, zxid)+1)
	})
}

func (s *script) await(what string, is func() bool) {
	s.t.Helper()
	for began := time.Now(); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > patience {
			s.t.Fatalf("after %v, still not: %s", patience, what)
		}
	}
}

// stat writes the fields that a lock may read. The times are left out.
func (s *script) stat(st *zk.Stat) string {
	owner := "no session"
	if st.EphemeralOwner != 0 {
		s.mu.Lock()
		owner = s.sessions[st.EphemeralOwner]
		s.mu.Unlock()
	}
	return fmt.Sprintf("c zxid(%d), m zxid(%d), p zxid(%d), version %d, cversion %d, aversion %d, of %s, %d bytes, %d children",
		st.Czxid, st.Mzxid, st.Pzxid, st.Version, st.Cversion, st.Aversion, owner, st.DataLength, st.NumChildren)
}

// caller is a client of go-zookeeper. Each of its methods notes the answer.
type caller struct {
	*zk.Conn
	*script
	name string

	mu     sync.Mutex
	conn   net.Conn
	open   chan struct{} // closed unless the connection is cut
	states []zk.State
	events []string
}

// client returns a client whose session has begun.
func (s *script) client(name string, timeout time.Duration) *caller {
	s.t.Helper()
	c := &caller{script: s, name: name, open: make(chan struct{})}
	close(c.open)
	// With three addresses, the driver tries again at once. All of them lead to the same server.
	servers := []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"}
	conn, _, err := zk.Connect(servers, timeout, zk.WithDialer(c.connect), zk.WithEventCallback(c.event), zk.WithLogger(noLog{}), zk.WithLogInfo(false))
	if err != nil {
		s.t.Fatal(err)
	}
	c.Conn = conn
	s.t.Cleanup(func() {
		c.mend()
		conn.Close()
	})
	c.awaitState(zk.StateHasSession)
	c.script.mu.Lock()
	s.sessions[conn.SessionID()] = name
	c.script.mu.Unlock()
	return c
}

// noLog drops the driver's log, because the driver also returns its errors.
type noLog struct{}

func (noLog) Printf(string, ...any) {}

func (c *caller) connect(string, string, time.Duration) (net.Conn, error) {
	c.mu.Lock()
	open := c.open
	c.mu.Unlock()
	<-open
	conn, err := c.dial()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn = conn
	return conn, err
}

func (c *caller) event(e zk.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Type == zk.EventSession {
		c.states = append(c.states, e.State)
		return
	}
	text := strings.TrimPrefix(e.Type.String(), "Event") + " " + e.Path
	if e.Err != nil {
		text += " (" + e.Err.Error() + ")"
	}
	c.events = append(c.events, text)
}

// awaitState waits until the client has been in a state since the last cut.
func (c *caller) awaitState(state zk.State) {
	c.t.Helper()
	c.await(c.name+" gets "+state.String(), func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return slices.Contains(c.states, state)
	})
}

// cut breaks the connection, and lets no new one begin.
func (c *caller) cut() {
	c.t.Helper()
	c.mu.Lock()
	c.open, c.states = make(chan struct{}), nil
	conn := c.conn
	c.mu.Unlock()
	_ = conn.Close()
	c.awaitState(zk.StateDisconnected)
}

func (c *caller) mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.open:
	default:
		close(c.open)
	}
}

// noteStates notes the states of the session since the last cut.
func (c *caller) noteStates() {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, s := range c.states {
		all = append(all, strings.TrimPrefix(s.String(), "State"))
	}
	c.note("%s states: %s", c.name, strings.Join(all, ", "))
}

// noteEvents notes the events that have arrived since the last time.
func (c *caller) noteEvents() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.note("%s events: %s", c.name, cmp.Or(strings.Join(c.events, ", "), "none"))
	c.events = nil
}

// hear makes a read, after which all events of earlier changes have arrived, and notes them.
func (c *caller) hear() {
	c.t.Helper()
	c.read()
	c.noteEvents()
}

// hearSorted is for events of one transaction, which may come in any order.
func (c *caller) hearSorted() {
	c.t.Helper()
	c.read()
	c.mu.Lock()
	slices.Sort(c.events)
	c.mu.Unlock()
	c.noteEvents()
}

func (c *caller) read() {
	c.t.Helper()
	if _, _, err := c.Exists("/"); err != nil {
		c.t.Fatalf("%s: %v", c.name, err)
	}
}

// answer notes what a request has returned.
func (c *caller) answer(request string, err error, format string, args ...any) {
	answer := fmt.Sprintf(format, args...)
	if err != nil {
		answer = err.Error()
	}
	c.note("%s %s: %s", c.name, request, answer)
}

func (c *caller) create(node, data string, flags int32) string {
	made, err := c.Create(c.dir+node, []byte(data), flags, zk.WorldACL(zk.PermAll))
	c.answer("create "+node, err, "%s", made)
	return strings.TrimPrefix(made, c.dir)
}

func (c *caller) delete(node string, version int32) {
	c.answer(fmt.Sprintf("delete %s, version %d", node, version), c.Delete(c.dir+node, version), "ok")
}

func (c *caller) set(node, data string, version int32) {
	stat, err := c.Set(c.dir+node, []byte(data), version)
	c.answer(fmt.Sprintf("set %s, version %d", node, version), err, "%s", c.stat(stat))
}

func (c *caller) get(node string) {
	data, stat, err := c.Get(c.dir + node)
	c.answer("get "+node, err, "%q, %s", data, c.stat(stat))
}

func (c *caller) getW(node string) {
	data, _, _, err := c.GetW(c.dir + node)
	c.answer("get "+node+", watched", err, "%q", data)
}

func (c *caller) exists(node string) {
	ok, stat, err := c.Exists(c.dir + node)
	text := "missing"
	if ok {
		text = c.stat(stat)
	}
	c.answer("stat "+node, err, "%s", text)
}

func (c *caller) list(node string) {
	names, stat, err := c.Children(c.dir + node)
	slices.Sort(names)
	c.answer("ls "+cmp.Or(node, "/"), err, "%s, %s", names, c.stat(stat))
}

// Operations of a multi. Their paths are in the folder of the script.
func (s *script) opCreate(node, data string, flags int32) *zk.CreateRequest {
	return &zk.CreateRequest{Path: s.dir + node, Data: []byte(data), Acl: zk.WorldACL(zk.PermAll), Flags: flags}
}

func (s *script) opDelete(node string, version int32) *zk.DeleteRequest {
	return &zk.DeleteRequest{Path: s.dir + node, Version: version}
}

func (s *script) opSet(node, data string, version int32) *zk.SetDataRequest {
	return &zk.SetDataRequest{Path: s.dir + node, Data: []byte(data), Version: version}
}

func (s *script) opCheck(node string, version int32) *zk.CheckVersionRequest {
	return &zk.CheckVersionRequest{Path: s.dir + node, Version: version}
}

func (c *caller) multi(ops ...any) {
	results, err := c.Multi(ops...)
	c.answer("multi", err, "ok")
	for i, r := range results {
		text := fmt.Sprintf("  %T %q", ops[i], r.String)
		if r.Stat != nil {
			text += ", " + c.stat(r.Stat)
		}
		if r.Error != nil {
			text += ", " + r.Error.Error()
		}
		c.note("%s", strings.ReplaceAll(text, "*zk.", ""))
	}
}

// raw is a client without the driver. It can name the session that it wants, and sends no pings.
type raw struct {
	*script
	net.Conn
	name     string
	id       int64
	password []byte
}

// raw connects a client, and notes the answer. Its session is new if id is 0.
func (s *script) raw(name string, timeout time.Duration, id int64, password []byte) *raw {
	s.t.Helper()
	conn, err := s.dial()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	r := &raw{script: s, Conn: conn, name: name}
	var p packet
	p.put(int32(0), int64(0), int32(timeout.Milliseconds()), id, password)
	r.send(p)
	answer, err := r.receive()
	if err != nil {
		s.t.Fatalf("%s connects: %v", name, err)
	}
	version, agreed := answer.int(), answer.int()
	r.id, r.password = answer.long(), answer.buffer()
	kind := "another session"
	switch r.id {
	case 0:
		kind = "no session"
	case id:
		kind = "the same session"
	}
	if id == 0 && r.id != 0 {
		kind = "a new session"
		s.mu.Lock()
		s.sessions[r.id] = name
		s.mu.Unlock()
	}
	s.note("%s connects: %s, version %d, time-out %d ms, password of %d bytes", name, kind, version, agreed, len(r.password))
	return r
}

func (r *raw) send(p packet) {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(p.bytes))) //nolint:gosec // few
	if _, err := r.Write(append(b, p.bytes...)); err != nil {
		r.t.Fatalf("%s: %v", r.name, err)
	}
}

func (r *raw) receive() (packet, error) {
	if err := r.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return packet{}, err
	}
	size := make([]byte, 4)
	if _, err := io.ReadFull(r, size); err != nil {
		return packet{}, err
	}
	b := make([]byte, binary.BigEndian.Uint32(size))
	_, err := io.ReadFull(r, b)
	return packet{bytes: b}, err
}

// request sends a request, and notes what comes next, with the header of each packet.
func (r *raw) request(what string, xid, op int32, fields func(*packet)) {
	r.t.Helper()
	var p packet
	p.put(xid, op)
	if fields != nil {
		fields(&p)
	}
	r.send(p)
	r.next(what)
}

// next notes one packet, or the end of the connection.
func (r *raw) next(what string) {
	r.t.Helper()
	p, err := r.receive()
	var timeout net.Error
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		r.t.Fatalf("%s, %s: nothing came: %v", r.name, what, err)
	case err != nil:
		r.note("%s %s: the connection ends", r.name, what)
		return
	}
	xid, zxid, code := p.int(), p.long(), p.int()
	text := ""
	if xid == -1 {
		text = fmt.Sprintf(", event %d, state %d, %s, zxid %d", p.int(), p.int(), p.text(), zxid)
	}
	r.note("%s %s: answer to %d, code %d%s, %d more bytes", r.name, what, xid, code, text, len(p.bytes))
}
