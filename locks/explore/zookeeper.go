package explore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"oversell/locks/zklock"
	"oversell/stock"
)

// ensemble is a ZooKeeper in memory: its nodes, sessions and watches. It has what the locks use, and
// answers as a server of version 3.8 does. The world's lock protects it.
type ensemble struct {
	w        *world
	nodes    map[string]*znode
	sessions map[int64]*session
	zxid     int64
}

type znode struct {
	data          []byte
	owner         int64 // the session of an ephemeral node, else 0
	created       int64 // zxid
	changed       int64 // zxid
	version       int32
	children      int32 // number of children now
	ever          int32 // number of children that were created: the next sequence number
	lastChild     int64 // zxid of the last change of the children
	dataWatchers  []*link
	childWatchers []*link
}

// session is that of a client. The server ends it after timeout without a packet of the client.
type session struct {
	id      int64
	timeout time.Duration
	last    time.Time
	on      *link
}

func newEnsemble(w *world) *ensemble {
	return &ensemble{w: w, nodes: map[string]*znode{"/": {children: 1, ever: 1}, "/oversell": {}}, sessions: map[int64]*session{}}
}

// open returns a client's session, which connects in the background.
func (e *ensemble) open(client int) (*zklock.Session, error) {
	return zklock.OpenWith([]string{"127.0.0.1:1"}, lease, func(string, string, time.Duration) (net.Conn, error) {
		e.w.mu.Lock()
		defer e.w.mu.Unlock()
		// At the end of the schedule, a crashed client may connect: it repeats its releases until then.
		if e.w.clients[client].crashed && !e.w.over {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errCrashed}
		}
		l := &link{w: e.w, client: client, peer: e, changed: make(chan struct{})}
		e.w.links = append(e.w.links, l)
		return &clientEnd{link: l}, nil
	})
}

// The operations of the protocol (zookeeper.jute, ZooDefs.OpCode).
const (
	opCreate, opDelete, opExists, opGet, opSet     = 1, 2, 3, 4, 5
	opPing, opList, opCheck, opMulti, opSetWatches = 11, 12, 13, 14, 101
	opClose, opFailed                              = -11, -1
)

var errPacket = errors.New("not a packet of ZooKeeper")

// packet reads and writes the fields of a request or an answer (Jute).
type packet struct {
	bytes []byte
	short bool
}

func (p *packet) take(n int) []byte {
	if n < 0 || n > len(p.bytes) {
		p.short = true
		return make([]byte, max(n, 8))
	}
	var b []byte
	b, p.bytes = p.bytes[:n], p.bytes[n:]
	return b
}

func (p *packet) int() int32  { return int32(binary.BigEndian.Uint32(p.take(4))) } //nolint:gosec // as written
func (p *packet) long() int64 { return int64(binary.BigEndian.Uint64(p.take(8))) } //nolint:gosec // as written
func (p *packet) bool() bool  { return p.take(1)[0] != 0 }
func (p *packet) buffer() []byte {
	n := p.int()
	if n < 0 {
		return nil
	}
	return p.take(int(n))
}
func (p *packet) text() string { return string(p.buffer()) }

func (p *packet) putInt(n int32)  { p.bytes = binary.BigEndian.AppendUint32(p.bytes, uint32(n)) } //nolint:gosec // as written
func (p *packet) putLong(n int64) { p.bytes = binary.BigEndian.AppendUint64(p.bytes, uint64(n)) } //nolint:gosec // as written
func (p *packet) putBool(b bool)  { p.bytes = append(p.bytes, map[bool]byte{true: 1}[b]) }
func (p *packet) putBuffer(b []byte) {
	p.putInt(int32(len(b))) //nolint:gosec // the locks store little
	p.bytes = append(p.bytes, b...)
}

func (p *packet) putStat(n *znode) {
	p.putLong(n.created)
	p.putLong(n.changed)
	p.putLong(0)
	p.putLong(0)
	p.putInt(n.version)
	p.putInt(2*n.ever - n.children)
	p.putInt(0)
	p.putLong(n.owner)
	p.putInt(int32(len(n.data))) //nolint:gosec // the locks store little
	p.putInt(n.children)
	p.putLong(n.lastChild)
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

// message reads what a client sends. The beginning of a session and its pings do not wait.
func (e *ensemble) message(l *link, b []byte) (m message, waits bool, err error) {
	p := packet{bytes: b}
	if size := p.int(); p.short || int(size) != len(p.bytes) {
		return m, false, errPacket
	}
	if l.session == 0 {
		return message{deliver: func() {
			e.w.touch("zookeeper", true)
			e.connect(l, p)
		}}, false, nil
	}
	xid, op := p.int(), p.int()
	if op == opPing || op == opClose || op == opSetWatches {
		return message{deliver: func() {
			if !e.w.clients[l.client].paused { // a process that is frozen sends no ping
				e.w.touch("zookeeper", op != opPing)
				e.execute(l, xid, op, p)
			}
		}}, false, nil
	}
	name, writes := describe(op, p)
	return message{name: name, server: "zookeeper", writes: writes, deliver: func() { e.execute(l, xid, op, p) }}, true, nil
}

func describe(op int32, p packet) (name string, writes bool) {
	if op == opMulti {
		var all []string
		for kind, done := p.int(), p.bool(); !done && !p.short; kind, done = p.int(), p.bool() {
			p.int()
			part := p
			one, _ := describe(kind, part)
			all = append(all, one)
			skip(kind, &p)
		}
		return strings.Join(all, ", "), true
	}
	node := stock.WithoutTokens(p.text())
	switch op {
	case opCreate:
		return "create " + node, true
	case opDelete:
		return "delete " + node, true
	case opSet:
		return "set " + node, true
	case opCheck:
		return "check " + node, false
	}
	watch := ""
	if p.bool() {
		watch = ", watched" // a watch is an entry in the server
	}
	return map[int32]string{opExists: "stat ", opGet: "get ", opList: "ls "}[op] + node + watch, watch != ""
}

// skip reads one operation of a multi.
func skip(kind int32, p *packet) {
	p.text()
	if kind == opSet {
		p.buffer()
	}
	p.int()
}

// connect begins a session, or goes on with one on a new connection.
func (e *ensemble) connect(l *link, p packet) {
	p.int()
	p.long()
	timeout, id := p.int(), p.long()
	s := e.sessions[id]
	var answer packet
	answer.putInt(0)
	switch {
	case id != 0 && s == nil: // the session has expired
		answer.putInt(0)
		answer.putLong(0)
	default:
		if s == nil {
			s = &session{id: int64(len(e.sessions)+1)<<8 + int64(l.client) + 1, timeout: time.Duration(timeout) * time.Millisecond}
			e.zxid++
			e.sessions[s.id] = s
		}
		s.on, s.last, l.session = l, time.Now(), s.id
		answer.putInt(timeout)
		answer.putLong(s.id)
	}
	answer.putBuffer(make([]byte, 16))
	l.send(answer)
}

// execute answers a request.
func (e *ensemble) execute(l *link, xid, op int32, p packet) {
	if s := e.sessions[l.session]; s != nil {
		s.last = time.Now()
	} else {
		l.breakNow()
		return
	}
	var body packet
	var code zk.ErrCode
	switch op {
	case opMulti:
		e.multi(&body, p)
	case opClose:
		e.endSession(l.session)
	case opPing, opSetWatches:
	default:
		code = e.apply(l, op, &p, &body)
	}
	var answer packet
	answer.putInt(xid)
	answer.putLong(e.zxid)
	answer.putInt(int32(code))
	if code == 0 {
		answer.bytes = append(answer.bytes, body.bytes...)
	}
	l.send(answer)
}

// apply executes one operation, and writes its result.
func (e *ensemble) apply(l *link, op int32, p, body *packet) zk.ErrCode {
	node := p.text()
	n := e.nodes[node]
	if op == opCreate {
		return e.create(l, node, p, body)
	}
	if n == nil && op != opExists {
		return code(zk.ErrNoNode)
	}
	switch op {
	case opExists:
		if p.bool() && n != nil {
			n.dataWatchers = append(n.dataWatchers, l)
		}
		if n == nil {
			return code(zk.ErrNoNode)
		}
		body.putStat(n)
	case opGet:
		if p.bool() {
			n.dataWatchers = append(n.dataWatchers, l)
		}
		body.putBuffer(n.data)
		body.putStat(n)
	case opList:
		if p.bool() {
			n.childWatchers = append(n.childWatchers, l)
		}
		names := e.below(node)
		body.putInt(int32(len(names))) //nolint:gosec // few
		for _, name := range names {
			body.putBuffer([]byte(path.Base(name)))
		}
		body.putStat(n)
	case opSet:
		data := slices.Clone(p.buffer())
		if wanted := p.int(); wanted >= 0 && wanted != n.version {
			return code(zk.ErrBadVersion)
		}
		e.zxid++
		n.data, n.changed = data, e.zxid
		n.version++
		body.putStat(n)
		e.notify(&n.dataWatchers, zk.EventNodeDataChanged, node)
	case opDelete, opCheck:
		if wanted := p.int(); wanted >= 0 && wanted != n.version {
			return code(zk.ErrBadVersion)
		}
		if op == opCheck {
			return 0
		}
		if n.children > 0 {
			return code(zk.ErrNotEmpty)
		}
		e.zxid++
		e.remove(node)
	default:
		return -6 // unimplemented
	}
	return 0
}

func code(err error) zk.ErrCode {
	return map[error]zk.ErrCode{zk.ErrNoNode: -101, zk.ErrBadVersion: -103, zk.ErrNodeExists: -110, zk.ErrNotEmpty: -111, zk.ErrNoChildrenForEphemerals: -108}[err]
}

func (e *ensemble) create(l *link, node string, p, body *packet) zk.ErrCode {
	data := slices.Clone(p.buffer())
	for range p.int() { // the access list, which allows everything
		p.int()
		p.text()
		p.text()
	}
	flags := p.int()
	parent := e.nodes[path.Dir(node)]
	switch {
	case parent == nil:
		return code(zk.ErrNoNode)
	case parent.owner != 0:
		return code(zk.ErrNoChildrenForEphemerals)
	}
	if flags&zk.FlagSequence != 0 {
		node += fmt.Sprintf("%010d", parent.ever)
	}
	if e.nodes[node] != nil {
		return code(zk.ErrNodeExists)
	}
	e.zxid++
	n := &znode{data: data, created: e.zxid, changed: e.zxid, lastChild: e.zxid}
	if flags&zk.FlagEphemeral != 0 {
		n.owner = l.session
	}
	e.nodes[node] = n
	parent.children++
	parent.ever++
	parent.lastChild = e.zxid
	e.notify(&parent.childWatchers, zk.EventNodeChildrenChanged, path.Dir(node))
	body.putBuffer([]byte(node))
	return 0
}

func (e *ensemble) remove(node string) {
	n, parent := e.nodes[node], e.nodes[path.Dir(node)]
	delete(e.nodes, node)
	parent.children--
	parent.lastChild = e.zxid
	e.notify(&n.dataWatchers, zk.EventNodeDeleted, node)
	e.notify(&n.childWatchers, zk.EventNodeDeleted, node)
	e.notify(&parent.childWatchers, zk.EventNodeChildrenChanged, path.Dir(node))
}

// below returns the children of a node in the order of their creation.
func (e *ensemble) below(node string) (names []string) {
	for name := range e.nodes {
		if name != "/" && path.Dir(name) == node {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return int(e.nodes[a].created - e.nodes[b].created) })
	return names
}

// notify sends an event to the watchers, each once.
func (e *ensemble) notify(watchers *[]*link, event zk.EventType, node string) {
	var told []*link
	for _, l := range *watchers {
		if slices.Contains(told, l) {
			continue
		}
		told = append(told, l)
		e.w.wake(l.client)
		var p packet
		p.putInt(-1)
		p.putLong(-1)
		p.putInt(0)
		p.putInt(int32(event))
		p.putInt(3) // SyncConnected
		p.putBuffer([]byte(node))
		l.send(p)
	}
	*watchers = nil
}

// multi executes all operations or none.
func (e *ensemble) multi(body *packet, p packet) {
	check := p
	failed, at := zk.ErrCode(0), -1
	for i := 0; ; i++ {
		kind, done := check.int(), check.bool()
		if check.int(); done || check.short {
			break
		}
		rest := check
		node := e.nodes[rest.text()]
		if node == nil && failed == 0 {
			failed, at = code(zk.ErrNoNode), i
		}
		skip(kind, &check)
	}
	for i := 0; ; i++ {
		kind, done := p.int(), p.bool()
		if p.int(); done || p.short {
			break
		}
		if failed != 0 {
			skip(kind, &p)
			result := zk.ErrCode(0)
			switch {
			case i == at:
				result = failed
			case i > at:
				result = -2 // runtime inconsistency: it was not tried
			}
			header(body, opFailed, false, result)
			body.putInt(int32(result))
			continue
		}
		header(body, kind, false, 0)
		e.apply(nil, kind, &p, body)
	}
	header(body, opFailed, true, -1)
}

func header(p *packet, kind int32, done bool, err zk.ErrCode) {
	p.putInt(kind)
	p.putBool(done)
	p.putInt(int32(err))
}

// expire ends the sessions that have sent nothing for their time-out.
func (e *ensemble) expire(now time.Time) {
	for id, s := range e.sessions {
		if now.Sub(s.last) >= s.timeout {
			e.endSession(id)
		}
	}
}

// endSession deletes the nodes of a session, and breaks its connection.
func (e *ensemble) endSession(id int64) {
	s := e.sessions[id]
	if s == nil {
		return
	}
	e.w.touch("zookeeper", true)
	delete(e.sessions, id)
	var gone []string
	for name, n := range e.nodes {
		if n.owner == id {
			gone = append(gone, name)
		}
	}
	slices.SortFunc(gone, func(a, b string) int { return int(e.nodes[a].created - e.nodes[b].created) })
	e.zxid++
	for _, name := range gone {
		e.remove(name)
	}
	if s.on != nil {
		s.on.breakNow()
	}
}

// list returns the sessions in the order of their clients.
func (e *ensemble) list() (all []*session) {
	for _, s := range e.sessions {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *session) int { return a.on.client - b.on.client })
	return all
}
