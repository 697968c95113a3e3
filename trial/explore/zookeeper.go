package explore

import (
	"context"
	"encoding/binary"
	"maps"
	"net"
	"path"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"oversell/locks/zklock"
)

// ensemble is a ZooKeeper in memory: its nodes, sessions and watches. It has what the locks use, and
// answers as a server of version 3.8 does: TestZooKeeper compares the two. The world's lock protects it.
type ensemble struct {
	tree
	w        *world
	sessions map[int64]*session
	opened   []int64            // by client, the number of its sessions
	watches  map[string][]*link // by path: of a node and its data
}

// session is that of a client. The server ends it after timeout without a packet of the client.
type session struct {
	id      int64
	client  int
	timeout time.Duration
	last    time.Time
	on      *link
}

func newEnsemble(w *world) *ensemble {
	return &ensemble{
		tree: newTree(), w: w, sessions: map[int64]*session{}, opened: make([]int64, len(w.clients)),
		watches: map[string][]*link{},
	}
}

// open returns a client's session, which connects in the background.
func (e *ensemble) open(client int, timeout time.Duration) (*zklock.Session, error) {
	// Three addresses, as an ensemble has: with one address, the driver waits for a second before it
	// connects again, which is longer than the session lasts.
	servers := []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"}
	// Each schedule opens connections, and the driver's usual buffers of 1.5 MB would cost most of its time.
	const longest = 1 << 14
	return zklock.OpenWith(servers, timeout, func(string, string, time.Duration) (net.Conn, error) { return e.dial(client) },
		zk.WithMaxConnBufferSize(longest), zk.WithMaxBufferSize(longest))
}

// dial connects a client. A client that is paused connects when it goes on.
func (e *ensemble) dial(client int) (net.Conn, error) {
	if err := e.w.awaitRunning(context.Background(), e.w.clients[client]); err != nil {
		return nil, err
	}
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	if e.w.dead(client) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errCrashed}
	}
	l := &link{news: newNews(), w: e.w, client: client, peer: e}
	e.w.links = append(e.w.links, l)
	return &clientEnd{link: l}, nil
}

// send puts an answer or an event on a connection.
func (l *link) send(p packet) {
	if l.broken || l.mute && len(l.toCli) > 0 {
		return
	}
	l.toCli = binary.BigEndian.AppendUint32(l.toCli, uint32(len(p.bytes))) //nolint:gosec // as written
	l.toCli = append(l.toCli, p.bytes...)
	l.change()
}

// message reads what a client sends. These messages are of no interest, and do not wait: the beginning
// of a session, its pings and its end, and the creation of the folders.
func (e *ensemble) message(l *link, b []byte) (m message, waits bool, err error) {
	p := packet{bytes: b}
	if size := p.int(); p.short || int(size) != len(p.bytes) {
		return m, false, errPacket
	}
	if l.session == 0 {
		return e.connection(l, p)
	}
	xid := p.int()
	o := p.operation(p.int())
	if p.short {
		return m, false, errPacket
	}
	m = message{server: "zookeeper", deliver: func() { e.execute(l, xid, o) }}
	paused := e.w.clients[l.client].paused
	switch o.kind {
	case opPing, opClose, opSetWatches:
		if paused { // a process that is frozen sends no ping
			return message{deliver: func() {}}, false, nil
		}
		return e.atOnce(m, o.kind != opPing), false, nil
	case opCreate:
		if !paused && e.forFolders(o) {
			return e.atOnce(m, true), false, nil
		}
	}
	m.name, m.writes = o.String(), o.writes()
	return m, true, nil
}

// atOnce returns a message that does not wait. The move in which it is sent has its effect, too.
func (e *ensemble) atOnce(m message, writes bool) message {
	return message{deliver: func() {
		e.w.touch("zookeeper", writes)
		m.deliver()
	}}
}

// forFolders reports whether o creates a folder, or fails because the folder does not exist yet.
func (e *ensemble) forFolders(o operation) bool {
	_, exists := e.nodes[path.Dir(o.path)]
	return !exists || o.flags == zk.FlagPersistent && len(o.data) == 0
}

// connection reads the first packet of a connection. It waits if a request of the same session is on
// its way: the server closes the session's former connection, so it executes the request before, or never.
func (e *ensemble) connection(l *link, p packet) (m message, waits bool, err error) {
	p.int()
	p.long()
	timeout, id := time.Duration(p.int())*time.Millisecond, p.long()
	if p.short {
		return m, false, errPacket
	}
	m = message{
		name: "continue the session", server: "zookeeper", writes: true,
		deliver: func() { e.connect(l, timeout, id) },
	}
	s := e.sessions[id]
	if s != nil && slices.ContainsFunc(e.w.inFlight, func(m *message) bool { return m.on == s.on }) {
		return m, true, nil
	}
	return e.atOnce(m, true), false, nil
}

// connect begins a session, or continues one on a new connection. It compares no password.
func (e *ensemble) connect(l *link, timeout time.Duration, id int64) {
	s := e.sessions[id]
	switch {
	case id == 0:
		e.opened[l.client]++
		s = &session{id: int64(l.client+1)<<8 + e.opened[l.client], client: l.client, timeout: timeout}
		e.sessions[s.id] = s
	case s == nil: // it has expired
		l.send(connected(0, 0))
		l.ended = true
		return
	default:
		s.on.breakNow()
	}
	s.on, s.last, l.session = l, time.Now(), s.id
	l.send(connected(s.timeout, s.id))
}

func connected(timeout time.Duration, id int64) (answer packet) {
	answer.put(int32(0), int32(timeout.Milliseconds()), id, make([]byte, 16)) //nolint:gosec // as it was sent
	return answer
}

// execute answers a request.
func (e *ensemble) execute(l *link, xid int32, o operation) {
	s := e.sessions[l.session]
	if s == nil {
		l.breakNow()
		return
	}
	s.last = time.Now()
	var body, answer packet
	code := e.apply(l, o, &body)
	answer.put(xid, e.zxid, code)
	if code == 0 {
		answer.bytes = append(answer.bytes, body.bytes...)
	}
	l.send(answer)
	if o.kind == opClose {
		l.ended = true
	}
}

// apply executes a request, and writes its result.
func (e *ensemble) apply(l *link, o operation, body *packet) zk.ErrCode {
	switch o.kind {
	case opPing:
	case opClose:
		e.deleteSession(l.session)
	case opSetWatches:
		e.setWatches(l, o)
	case opExists, opGet, opList:
		if o.watch && o.kind != opGet { // no lock does this
			return unimplemented
		}
		code := e.read(o, body)
		if o.watch && code == 0 {
			e.watch(l, o.path)
		}
		return code
	case opMulti:
		e.multi(l.session, o.parts, body)
	case opCreate, opDelete, opSet, opCheck:
		return e.change(func() zk.ErrCode { return e.write(o, l.session, body) })
	default:
		return unimplemented
	}
	return 0
}

// change executes a transaction. The events come before the answer.
func (e *ensemble) change(do func() zk.ErrCode) zk.ErrCode {
	code := e.transaction(do)
	for _, event := range e.events {
		e.notify(event)
	}
	return code
}

// multi executes all operations or none.
func (e *ensemble) multi(session int64, parts []operation, body *packet) {
	failed := 0
	code := e.change(func() (code zk.ErrCode) {
		for i, o := range parts {
			body.put(o.kind, false, int32(0))
			if code = e.write(o, session, body); code != 0 {
				failed = i
				return code
			}
		}
		return 0
	})
	if code != 0 {
		body.bytes = nil
		for i := range parts {
			result := zk.ErrCode(0)
			switch {
			case i == failed:
				result = code
			case i > failed:
				result = inconsistent
			}
			body.put(opFailed, false, result, result)
		}
	}
	body.put(opFailed, true, int32(-1))
}

func (e *ensemble) watch(l *link, node string) {
	if !slices.Contains(e.watches[node], l) {
		e.watches[node] = append(e.watches[node], l)
	}
}

// notify sends an event to the connections that watch. The watches end.
func (e *ensemble) notify(event zk.Event) {
	for _, l := range e.watches[event.Path] {
		l.sendEvent(event.Type, event.Path)
	}
	delete(e.watches, event.Path)
}

func (l *link) sendEvent(kind zk.EventType, node string) {
	const ofEvent int32 = -1
	l.w.wake(l.client)
	var p packet
	p.put(ofEvent, int64(-1), int32(0), kind, zk.StateSyncConnected, node)
	l.send(p)
}

// setWatches sets the watches of a client again, which has a new connection. It sends the events that
// the client has missed.
func (e *ensemble) setWatches(l *link, o operation) {
	slices.Sort(o.watches) // the driver has them in any order
	for _, node := range o.watches {
		switch n, exists := e.nodes[node]; {
		case !exists:
			l.sendEvent(zk.EventNodeDeleted, node)
		case n.Mzxid > o.seen:
			l.sendEvent(zk.EventNodeDataChanged, node)
		default:
			e.watch(l, node)
		}
	}
}

// expire ends the sessions that have sent nothing for their time-out.
func (e *ensemble) expire(now time.Time) {
	for _, id := range slices.Sorted(maps.Keys(e.sessions)) {
		if s := e.sessions[id]; now.Sub(s.last) >= s.timeout {
			e.endSession(id)
		}
	}
}

// endSession deletes the nodes of a session, and breaks its connection.
func (e *ensemble) endSession(id int64) {
	if s := e.sessions[id]; s != nil {
		e.w.touch("zookeeper", true)
		e.deleteSession(id)
		s.on.breakNow()
	}
}

func (e *ensemble) deleteSession(id int64) {
	delete(e.sessions, id)
	_ = e.change(func() zk.ErrCode {
		for _, name := range e.owned(id) {
			e.remove(name)
		}
		return 0
	})
}

// expiries returns the sessions whose end has an effect: a client that has ended needs none, unless its
// node is still there. A crashed client may still run, and end at any moment. The order of the ids is that of the clients.
func (e *ensemble) expiries() (all []move) {
	for _, id := range slices.Sorted(maps.Keys(e.sessions)) {
		owner := e.sessions[id].client
		if client := e.w.clients[owner]; client.done && !client.crashed && len(e.owned(id)) == 0 {
			continue
		}
		all = append(all, expiry(owner, func() { e.endSession(id) }))
	}
	return all
}
