package explore

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/go-zookeeper/zk"
)

// The errors of operations, as the protocol writes them (KeeperException.Code).
const (
	inconsistent      zk.ErrCode = -2 // this operation of a multi was not tried, because one before it failed
	unimplemented     zk.ErrCode = -6
	noNode            zk.ErrCode = -101
	badVersion        zk.ErrCode = -103
	noChildrenAllowed zk.ErrCode = -108 // below an ephemeral node
	nodeExists        zk.ErrCode = -110
	notEmpty          zk.ErrCode = -111
)

// tree has the nodes of a ZooKeeper, by path.
type tree struct {
	nodes  map[string]znode
	zxid   int64      // of the last transaction
	events []zk.Event // of the present transaction, for those who watch
}

type znode struct {
	zk.Stat // without the times, which no lock reads, and what putStat adds
	data    []byte
	ever    int32 // number of children that were created: the next sequence number
}

// newTree returns a tree with the two nodes that a new server has.
func newTree() tree {
	return tree{nodes: map[string]znode{"/": {Stat: zk.Stat{NumChildren: 1}, ever: 1}, "/zookeeper": {}}}
}

func (p *packet) putStat(n znode) {
	n.DataLength = int32(len(n.data))     //nolint:gosec // the locks store little
	n.Cversion = 2*n.ever - n.NumChildren // one for each creation, and one for each deletion
	p.put(n.Stat)
}

// transaction executes changes. If do returns an error, nothing is changed, and there is no event.
func (t *tree) transaction(do func() zk.ErrCode) zk.ErrCode {
	before := maps.Clone(t.nodes)
	t.zxid++
	t.events = nil
	code := do()
	if code != 0 {
		t.nodes, t.events = before, nil
	}
	return code
}

// read answers an operation that changes nothing.
func (t *tree) read(o operation, body *packet) zk.ErrCode {
	n, ok := t.nodes[o.path]
	if !ok {
		return noNode
	}
	switch o.kind {
	case opGet:
		body.put(n.data)
	case opList:
		names := t.sorted(func(name string, _ znode) bool { return name != "/" && path.Dir(name) == o.path })
		body.put(int32(len(names))) //nolint:gosec // few
		for _, name := range names {
			body.put(path.Base(name))
		}
	}
	body.putStat(n)
	return 0
}

// write executes one operation of a transaction, and writes its result.
func (t *tree) write(o operation, session int64, body *packet) zk.ErrCode {
	if o.kind == opCreate {
		return t.create(o, session, body)
	}
	n, ok := t.nodes[o.path]
	switch {
	case !ok:
		return noNode
	case o.version != -1 && o.version != n.Version:
		return badVersion
	}
	switch o.kind {
	case opDelete:
		if n.NumChildren > 0 {
			return notEmpty
		}
		t.remove(o.path)
	case opSet:
		n.data, n.Mzxid = o.data, t.zxid
		n.Version++
		t.nodes[o.path] = n
		t.event(zk.EventNodeDataChanged, o.path)
		body.putStat(n)
	}
	return 0
}

func (t *tree) create(o operation, session int64, body *packet) zk.ErrCode {
	parent, ok := t.nodes[path.Dir(o.path)]
	if !ok {
		return noNode
	}
	name := o.path
	if o.flags&zk.FlagSequence != 0 {
		name += fmt.Sprintf("%010d", parent.ever)
	}
	if _, ok := t.nodes[name]; ok {
		return nodeExists
	}
	if parent.EphemeralOwner != 0 {
		return noChildrenAllowed
	}
	n := znode{data: o.data, Stat: zk.Stat{Czxid: t.zxid, Mzxid: t.zxid, Pzxid: t.zxid}}
	if o.flags&zk.FlagEphemeral != 0 {
		n.EphemeralOwner = session
	}
	parent.NumChildren++
	parent.ever++
	parent.Pzxid = t.zxid
	t.nodes[name], t.nodes[path.Dir(name)] = n, parent
	body.put(name)
	return 0
}

func (t *tree) remove(name string) {
	parent := t.nodes[path.Dir(name)]
	parent.NumChildren--
	parent.Pzxid = t.zxid
	t.nodes[path.Dir(name)] = parent
	delete(t.nodes, name)
	t.event(zk.EventNodeDeleted, name)
}

func (t *tree) event(kind zk.EventType, name string) {
	t.events = append(t.events, zk.Event{Type: kind, Path: name})
}

// owned returns the nodes of a session.
func (t *tree) owned(session int64) []string {
	return t.sorted(func(_ string, n znode) bool { return n.EphemeralOwner == session })
}

// sorted returns nodes in the order of their creation, because a schedule must have the same result
// in each repetition.
func (t *tree) sorted(which func(string, znode) bool) (names []string) {
	for name, n := range t.nodes {
		if which(name, n) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(t.nodes[a].Czxid, t.nodes[b].Czxid), cmp.Compare(a, b))
	})
	return names
}
