package explore

import (
	"strconv"

	"github.com/go-zookeeper/zk"
)

const (
	persistent = zk.FlagPersistent
	ephemeral  = zk.FlagEphemeral
	sequential = zk.FlagSequence
)

type zookeeperScript struct {
	name string
	do   func(*script)
	want string
}

func zookeeperScripts() (all []zookeeperScript) {
	all = append(all, nodeScripts()...)
	all = append(all, multiScripts()...)
	all = append(all, watchScripts()...)
	return append(all, sessionScripts()...)
}

func nodeScripts() []zookeeperScript {
	return []zookeeperScript{
		{"create", func(s *script) {
			a := s.client("A", longSession)
			a.create("/n", "data", persistent)
			a.get("/n")
			a.create("/n", "other", persistent)
			a.create("/n", "other", ephemeral)
			a.create("/missing/n", "", persistent)
			a.create("/missing/n", "", ephemeral|sequential)
			a.create("/n/child", "", persistent)
			a.create("/e", "", ephemeral)
			a.exists("/e")
			a.create("/e/child", "", persistent)
			a.create("/e/child-", "", ephemeral|sequential)
			a.list("")
			_, err := a.Create("/", nil, persistent, zk.WorldACL(zk.PermAll))
			a.answer("create the root", err, "ok")
		}, `
			A create /n: /n
			A get /n: "data", c z2, m z2, p z2, version 0, cversion 0, aversion 0, of no session, 4 bytes, 0 children
			A create /n: zk: node already exists
			A create /n: zk: node already exists
			A create /missing/n: zk: node does not exist
			A create /missing/n: zk: node does not exist
			A create /n/child: /n/child
			A create /e: /e
			A stat /e: c z3, m z3, p z3, version 0, cversion 0, aversion 0, of A, 0 bytes, 0 children
			A create /e/child: zk: ephemeral nodes may not have children
			A create /e/child-: zk: ephemeral nodes may not have children
			A ls /: [e n], c z1, m z1, p z3, version 0, cversion 2, aversion 0, of no session, 0 bytes, 2 children
			A create the root: zk: node already exists
		`},
		{"create without data", func(s *script) {
			a := s.client("A", longSession)
			for _, data := range [][]byte{nil, {}} {
				node := "/" + strconv.FormatBool(data == nil)
				_, err := a.Create(s.dir+node, data, persistent, zk.WorldACL(zk.PermAll))
				a.answer("create "+node, err, "ok")
				got, stat, err := a.Get(s.dir + node)
				a.answer("get "+node, err, "nil %v, %d bytes", got == nil, stat.DataLength)
			}
		}, `
			A create /true: ok
			A get /true: nil true, 0 bytes
			A create /false: ok
			A get /false: nil false, 0 bytes
		`},
		{"sequence numbers", func(s *script) {
			a := s.client("A", longSession)
			a.create("/q", "", persistent)
			first := a.create("/q/n-", "", sequential)
			a.create("/q/n-", "", ephemeral|sequential)
			a.create("/q/other-", "", ephemeral|sequential) // one counter for all names
			a.create("/q/plain", "", persistent)            // which counts every new child
			a.create("/q/plain", "", persistent)            // but none that is rejected
			last := a.create("/q/n-", "", sequential)
			a.delete(last, -1)
			a.delete(first, -1)
			a.create("/q/n-", "", sequential) // and never goes back
			a.create("/q/n-0000000006", "", persistent)
			a.create("/q/n-0000000008", "", persistent)
			a.create("/q/n-", "", sequential) // to a name that exists
			a.create("/q/n-", "", sequential)
			a.create("/q/", "", sequential)
			a.list("/q")
		}, `
			A create /q: /q
			A create /q/n-: /q/n-0000000000
			A create /q/n-: /q/n-0000000001
			A create /q/other-: /q/other-0000000002
			A create /q/plain: /q/plain
			A create /q/plain: zk: node already exists
			A create /q/n-: /q/n-0000000004
			A delete /q/n-0000000004, version -1: ok
			A delete /q/n-0000000000, version -1: ok
			A create /q/n-: /q/n-0000000005
			A create /q/n-0000000006: /q/n-0000000006
			A create /q/n-0000000008: /q/n-0000000008
			A create /q/n-: zk: node already exists
			A create /q/n-: zk: node already exists
			A create /q/: /q/0000000008
			A ls /q: [0000000008 n-0000000001 n-0000000005 n-0000000006 n-0000000008 other-0000000002 plain], c z1, m z1, p z2, version 0, cversion 11, aversion 0, of no session, 0 bytes, 7 children
		`},
		{"sequence numbers in a new folder of the same name", func(s *script) {
			a := s.client("A", longSession)
			a.create("/q", "", persistent)
			first := a.create("/q/n-", "", sequential)
			a.delete(first, -1)
			a.delete("/q", -1)
			a.create("/q", "", persistent)
			a.create("/q/n-", "", sequential)
		}, `
			A create /q: /q
			A create /q/n-: /q/n-0000000000
			A delete /q/n-0000000000, version -1: ok
			A delete /q, version -1: ok
			A create /q: /q
			A create /q/n-: /q/n-0000000000
		`},
		{"delete", func(s *script) {
			a := s.client("A", longSession)
			a.delete("/n", -1)
			a.delete("/missing/n", -1)
			a.create("/n", "", persistent)
			a.delete("/n", 1)
			a.delete("/n", -2)
			a.delete("/n", 0)
			a.delete("/n", 0)
			a.create("/n", "", persistent)
			a.set("/n", "x", -1)
			a.delete("/n", 0)
			a.delete("/n", -1)
			a.create("/n", "", persistent)
			a.create("/n/child", "", persistent)
			a.delete("/n", -1)
			a.delete("/n", 7) // the version counts before the children
			a.delete("/n/child", -1)
			a.delete("/n", -1)
		}, `
			A delete /n, version -1: zk: node does not exist
			A delete /missing/n, version -1: zk: node does not exist
			A create /n: /n
			A delete /n, version 1: zk: version conflict
			A delete /n, version -2: zk: version conflict
			A delete /n, version 0: ok
			A delete /n, version 0: zk: node does not exist
			A create /n: /n
			A set /n, version -1: c z1, m z2, p z1, version 1, cversion 0, aversion 0, of no session, 1 bytes, 0 children
			A delete /n, version 0: zk: version conflict
			A delete /n, version -1: ok
			A create /n: /n
			A create /n/child: /n/child
			A delete /n, version -1: zk: node has children
			A delete /n, version 7: zk: version conflict
			A delete /n/child, version -1: ok
			A delete /n, version -1: ok
		`},
		{"an ephemeral node of another session", func(s *script) {
			a, b := s.client("A", longSession), s.client("B", longSession)
			a.create("/e", "of A", ephemeral)
			b.get("/e")
			b.create("/e", "of B", ephemeral)
			b.set("/e", "by B", 0)
			b.delete("/e", 1)
			a.delete("/e", -1)
		}, `
			A create /e: /e
			B get /e: "of A", c z1, m z1, p z1, version 0, cversion 0, aversion 0, of A, 4 bytes, 0 children
			B create /e: zk: node already exists
			B set /e, version 0: c z1, m z2, p z1, version 1, cversion 0, aversion 0, of A, 4 bytes, 0 children
			B delete /e, version 1: ok
			A delete /e, version -1: zk: node does not exist
		`},
		{"get and set", func(s *script) {
			a := s.client("A", longSession)
			a.get("/n")
			a.set("/n", "x", -1)
			a.create("/n", "zero", persistent)
			a.set("/n", "one", 0)
			a.set("/n", "never", 0)
			a.set("/n", "never", 2)
			a.set("/n", "two", -1)
			a.set("/n", "three", 2)
			a.get("/n")
			a.exists("/n")
			a.exists("/missing")
		}, `
			A get /n: zk: node does not exist
			A set /n, version -1: zk: node does not exist
			A create /n: /n
			A set /n, version 0: c z1, m z2, p z1, version 1, cversion 0, aversion 0, of no session, 3 bytes, 0 children
			A set /n, version 0: zk: version conflict
			A set /n, version 2: zk: version conflict
			A set /n, version -1: c z1, m z3, p z1, version 2, cversion 0, aversion 0, of no session, 3 bytes, 0 children
			A set /n, version 2: c z1, m z4, p z1, version 3, cversion 0, aversion 0, of no session, 5 bytes, 0 children
			A get /n: "three", c z1, m z4, p z1, version 3, cversion 0, aversion 0, of no session, 5 bytes, 0 children
			A stat /n: c z1, m z4, p z1, version 3, cversion 0, aversion 0, of no session, 5 bytes, 0 children
			A stat /missing: missing
		`},
		{"the state of a folder", func(s *script) {
			a := s.client("A", longSession)
			a.create("/f", "", persistent)
			a.exists("/f")
			a.create("/f/x", "", persistent)
			a.exists("/f")
			a.create("/f/y", "", ephemeral)
			a.exists("/f")
			a.set("/f/x", "x", -1) // does not change the folder
			a.create("/f/x/deep", "", persistent)
			a.exists("/f")
			a.set("/f", "data", -1)
			a.delete("/f/y", -1)
			a.exists("/f")
			a.create("/f/y", "", persistent)
			a.list("/f")
			a.exists("/f/y")
		}, `
			A create /f: /f
			A stat /f: c z1, m z1, p z1, version 0, cversion 0, aversion 0, of no session, 0 bytes, 0 children
			A create /f/x: /f/x
			A stat /f: c z1, m z1, p z2, version 0, cversion 1, aversion 0, of no session, 0 bytes, 1 children
			A create /f/y: /f/y
			A stat /f: c z1, m z1, p z3, version 0, cversion 2, aversion 0, of no session, 0 bytes, 2 children
			A set /f/x, version -1: c z2, m z4, p z2, version 1, cversion 0, aversion 0, of no session, 1 bytes, 0 children
			A create /f/x/deep: /f/x/deep
			A stat /f: c z1, m z1, p z3, version 0, cversion 2, aversion 0, of no session, 0 bytes, 2 children
			A set /f, version -1: c z1, m z5, p z3, version 1, cversion 2, aversion 0, of no session, 4 bytes, 2 children
			A delete /f/y, version -1: ok
			A stat /f: c z1, m z5, p z6, version 1, cversion 3, aversion 0, of no session, 4 bytes, 1 children
			A create /f/y: /f/y
			A ls /f: [x y], c z1, m z5, p z7, version 1, cversion 4, aversion 0, of no session, 4 bytes, 2 children
			A stat /f/y: c z7, m z7, p z7, version 0, cversion 0, aversion 0, of no session, 0 bytes, 0 children
		`},
		{"list", func(s *script) {
			a := s.client("A", longSession)
			a.list("/f")
			a.create("/f", "", persistent)
			a.list("/f")
			a.create("/f/x", "", persistent)
			a.create("/f/y", "", ephemeral)
			a.create("/f/x/deep", "", persistent)
			a.create("/fx", "", persistent)
			a.list("/f")
			a.list("/f/y")
		}, `
			A ls /f: zk: node does not exist
			A create /f: /f
			A ls /f: [], c z1, m z1, p z1, version 0, cversion 0, aversion 0, of no session, 0 bytes, 0 children
			A create /f/x: /f/x
			A create /f/y: /f/y
			A create /f/x/deep: /f/x/deep
			A create /fx: /fx
			A ls /f: [x y], c z1, m z1, p z2, version 0, cversion 2, aversion 0, of no session, 0 bytes, 2 children
			A ls /f/y: [], c z2, m z2, p z2, version 0, cversion 0, aversion 0, of A, 0 bytes, 0 children
		`},
	}
}

func multiScripts() []zookeeperScript {
	return []zookeeperScript{
		{"multi: all succeed", func(s *script) {
			a := s.client("A", longSession)
			a.create("/old", "", persistent)
			a.multi(
				s.opCreate("/f", "", persistent), s.opCreate("/f/n-", "", sequential), s.opCreate("/f/n-", "", ephemeral|sequential),
				s.opSet("/old", "new", 0), s.opSet("/old", "newer", 1), s.opCheck("/old", 2), s.opDelete("/old", 2),
			)
			a.exists("/old")
			a.list("/f")
			a.exists("/f/n-0000000000")
			a.exists("/f/n-0000000001")
		}, `
			A create /old: /old
			A multi: ok
			  CreateRequest "/f"
			  CreateRequest "/f/n-0000000000"
			  CreateRequest "/f/n-0000000001"
			  SetDataRequest "", c z1, m z2, p z1, version 1, cversion 0, aversion 0, of no session, 3 bytes, 0 children
			  SetDataRequest "", c z1, m z2, p z1, version 2, cversion 0, aversion 0, of no session, 5 bytes, 0 children
			  CheckVersionRequest ""
			  DeleteRequest ""
			A stat /old: missing
			A ls /f: [n-0000000000 n-0000000001], c z2, m z2, p z2, version 0, cversion 2, aversion 0, of no session, 0 bytes, 2 children
			A stat /f/n-0000000000: c z2, m z2, p z2, version 0, cversion 0, aversion 0, of no session, 0 bytes, 0 children
			A stat /f/n-0000000001: c z2, m z2, p z2, version 0, cversion 0, aversion 0, of A, 0 bytes, 0 children
		`},
		{"multi: one fails in the middle", func(s *script) {
			a := s.client("A", longSession)
			a.create("/f", "", persistent)
			a.create("/old", "", persistent)
			a.existsW("/new")
			a.getW("/old")
			a.listW("/f")
			for _, fails := range []any{
				s.opDelete("/missing", -1), s.opDelete("/old", 0), s.opDelete("/f", -1), s.opSet("/missing", "", -1), s.opSet("/old", "", 7),
				s.opCheck("/missing", -1), s.opCheck("/old", 0), s.opCreate("/f/x", "", persistent), s.opCreate("/missing/x", "", ephemeral),
				s.opCreate("/e/x", "", persistent),
			} {
				a.multi(
					s.opCreate("/new", "", persistent), s.opCreate("/e", "", ephemeral), s.opCreate("/f/x", "", persistent),
					s.opSet("/old", "x", 0), fails, s.opDelete("/new", -1), s.opCheck("/nowhere", -1),
				)
			}
			a.hear() // nothing was applied
			a.exists("/new")
			a.get("/old")
			a.list("/f")
			a.create("/f/n-", "", sequential)
			a.hear()
		}, `
			A create /f: /f
			A create /old: /old
			A stat /new, watched: missing
			A get /old, watched: ""
			A ls /f, watched: []
			A multi: zk: node does not exist
			  CreateRequest ""
			  CreateRequest ""
			  CreateRequest ""
			  SetDataRequest ""
			  DeleteRequest "", zk: node does not exist
			  DeleteRequest "", unknown error: -2
			  CheckVersionRequest "", unknown error: -2
			A multi: zk: version conflict
			  CreateRequest ""
			  CreateRequest ""
			  CreateRequest ""
			  SetDataRequest ""
			  DeleteRequest "", zk: version conflict
			  DeleteRequest "", unknown error: -2
			  CheckVersionRequest "", unknown error: -2
			A multi: zk: node has children
			  CreateRequest ""
			  CreateRequest ""
			  CreateRequest ""
			  SetDataRequest ""
			  DeleteRequest "", zk: node has children
			  DeleteRequest "", unknown error: -2
			  CheckVersionRequest "", unknown error: -2
			A multi: zk: node does not exist
			  CreateRequest ""
			  CreateRequest ""
			  CreateRequest ""
			  SetDataRequest ""
			  SetDataRequest "", zk: node does not exist
			  DeleteRequest "", unknown error: -2
			  CheckVersionRequest "", unknown error: -2
			A multi: zk: version conflict
			  CreateRequest ""
			  CreateRequest ""
			  CreateRequest ""
			  SetDataRequest ""
			  SetDataRequest "", zk: version conflict
			  DeleteRequest "", unknown error: -2
			  CheckVersionRequest "", unknown error: -2
			A multi: zk: node does not exist
			  CreateRequest ""
			  CreateRequest ""
			  CreateRequest ""
			  SetDataRequest ""
			  CheckVersionRequest "", zk: node does not exist
			  DeleteRequest "", unknown error: -2
			  CheckVersionRequest "", unknown error: -2
			A multi: zk: version conflict
			  CreateRequest ""
			  CreateRequest ""
			  CreateRequest ""
			  SetDataRequest ""
			  CheckVersionRequest "", zk: version conflict
			  DeleteRequest "", unknown error: -2
			  CheckVersionRequest "", unknown error: -2
			A multi: zk: node already exists
			  CreateRequest ""
			  CreateRequest ""
			  CreateRequest ""
			  SetDataRequest ""
			  CreateRequest "", zk: node already exists
			  DeleteRequest "", unknown error: -2
			  CheckVersionRequest "", unknown error: -2
			A multi: zk: node does not exist
			  CreateRequest ""
			  CreateRequest ""
			  CreateRequest ""
			  SetDataRequest ""
			  CreateRequest "", zk: node does not exist
			  DeleteRequest "", unknown error: -2
			  CheckVersionRequest "", unknown error: -2
			A multi: zk: ephemeral nodes may not have children
			  CreateRequest ""
			  CreateRequest ""
			  CreateRequest ""
			  SetDataRequest ""
			  CreateRequest "", zk: ephemeral nodes may not have children
			  DeleteRequest "", unknown error: -2
			  CheckVersionRequest "", unknown error: -2
			A events: none
			A stat /new: missing
			A get /old: "", c z2, m z2, p z2, version 0, cversion 0, aversion 0, of no session, 0 bytes, 0 children
			A ls /f: [], c z1, m z1, p z1, version 0, cversion 0, aversion 0, of no session, 0 bytes, 0 children
			A create /f/n-: /f/n-0000000000
			A events: NodeChildrenChanged /f
		`},
		{"multi: checks only", func(s *script) {
			a := s.client("A", longSession)
			a.create("/n", "", persistent)
			a.multi(s.opCheck("/n", 0), s.opCheck("/n", -1))
			a.multi(s.opCheck("/n", 1), s.opCheck("/n", -1))
			a.multi()
		}, `
			A create /n: /n
			A multi: ok
			  CheckVersionRequest ""
			  CheckVersionRequest ""
			A multi: zk: version conflict
			  CheckVersionRequest "", zk: version conflict
			  CheckVersionRequest "", unknown error: -2
			A multi: ok
		`},
		{"multi: create and delete", func(s *script) {
			a := s.client("A", longSession)
			a.existsW("/n")
			a.listW("")
			a.multi(s.opCreate("/n", "", ephemeral), s.opDelete("/n", 0), s.opCreate("/n", "", persistent), s.opDelete("/n", 0))
			a.hear()
			a.exists("/n")
			a.create("/n-", "", sequential)
		}, `
			A stat /n, watched: missing
			A ls /, watched: []
			A multi: ok
			  CreateRequest "/n"
			  DeleteRequest ""
			  CreateRequest "/n"
			  DeleteRequest ""
			A events: NodeCreated /n, NodeChildrenChanged /
			A stat /n: missing
			A create /n-: /n-0000000002
		`},
		{"multi: release a lock", func(s *script) {
			a, b := s.client("A", longSession), s.client("B", longSession)
			a.create("/q", "", persistent)
			first := a.create("/q/lock-", "oversell", ephemeral|sequential)
			b.create("/q/lock-", "oversell", ephemeral|sequential)
			b.getW(first)
			a.multi(s.opCheck(first, -1), s.opSet("/q", "", -1)) // a higher fence
			b.hear()
			a.multi(s.opSet(first, "", -1), s.opDelete(first, -1))
			b.hear()
			a.multi(s.opSet(first, "", -1), s.opDelete(first, -1))
			b.list("/q")
		}, `
			A create /q: /q
			A create /q/lock-: /q/lock-0000000000
			B create /q/lock-: /q/lock-0000000001
			B get /q/lock-0000000000, watched: "oversell"
			A multi: ok
			  CheckVersionRequest ""
			  SetDataRequest "", c z1, m z4, p z3, version 1, cversion 2, aversion 0, of no session, 0 bytes, 2 children
			B events: none
			A multi: ok
			  SetDataRequest "", c z2, m z5, p z2, version 1, cversion 0, aversion 0, of A, 0 bytes, 0 children
			  DeleteRequest ""
			B events: NodeDataChanged /q/lock-0000000000
			A multi: zk: node does not exist
			  SetDataRequest "", zk: node does not exist
			  DeleteRequest "", unknown error: -2
			B ls /q: [lock-0000000001], c z1, m z4, p z5, version 1, cversion 3, aversion 0, of no session, 0 bytes, 1 children
		`},
	}
}

func watchScripts() []zookeeperScript {
	return []zookeeperScript{
		{"watch the data", func(s *script) {
			a, b := s.client("A", longSession), s.client("B", longSession)
			a.getW("/n") // leaves no watch on a missing node
			b.create("/n", "", persistent)
			a.hear()
			a.getW("/n")
			b.create("/n/child", "", persistent)
			b.delete("/n/child", -1)
			b.set("/n", "x", 7)
			a.hear()
			b.set("/n", "x", -1)
			b.set("/n", "y", -1) // a watch fires once
			a.hear()
			a.getW("/n")
			b.delete("/n", -1)
			b.create("/n", "", persistent)
			a.hear()
		}, `
			A get /n, watched: zk: node does not exist
			B create /n: /n
			A events: none
			A get /n, watched: ""
			B create /n/child: /n/child
			B delete /n/child, version -1: ok
			B set /n, version 7: zk: version conflict
			A events: none
			B set /n, version -1: c z1, m z3, p z2, version 1, cversion 2, aversion 0, of no session, 1 bytes, 0 children
			B set /n, version -1: c z1, m z4, p z2, version 2, cversion 2, aversion 0, of no session, 1 bytes, 0 children
			A events: NodeDataChanged /n
			A get /n, watched: "y"
			B delete /n, version -1: ok
			B create /n: /n
			A events: NodeDeleted /n
		`},
		{"watch whether a node exists", func(s *script) {
			a, b := s.client("A", longSession), s.client("B", longSession)
			a.existsW("/n")
			a.hear()
			b.create("/n", "", persistent)
			a.hear()
			b.set("/n", "x", -1)
			a.hear()
			a.existsW("/n")
			b.set("/n", "y", -1)
			a.hear()
			a.existsW("/n")
			b.delete("/n", -1)
			a.hear()
			b.create("/n", "", ephemeral)
			a.hear()
		}, `
			A stat /n, watched: missing
			A events: none
			B create /n: /n
			A events: NodeCreated /n
			B set /n, version -1: c z1, m z2, p z1, version 1, cversion 0, aversion 0, of no session, 1 bytes, 0 children
			A events: none
			A stat /n, watched: there
			B set /n, version -1: c z1, m z3, p z1, version 2, cversion 0, aversion 0, of no session, 1 bytes, 0 children
			A events: NodeDataChanged /n
			A stat /n, watched: there
			B delete /n, version -1: ok
			A events: NodeDeleted /n
			B create /n: /n
			A events: none
		`},
		{"watch the children", func(s *script) {
			a, b := s.client("A", longSession), s.client("B", longSession)
			a.listW("/f") // leaves no watch on a missing node
			b.create("/f", "", persistent)
			a.hear()
			a.listW("/f")
			b.set("/f", "x", -1)
			a.hear()
			b.create("/f/x", "", ephemeral)
			b.create("/f/y", "", persistent)
			a.hear()
			a.listW("/f")
			b.set("/f/y", "y", -1)
			b.create("/f/y/deep", "", persistent)
			b.delete("/f/y/deep", -1)
			a.hear()
			b.delete("/f/y", -1)
			b.delete("/f/x", -1)
			a.hear()
			a.listW("/f")
			b.delete("/f", -1)
			a.hear()
		}, `
			A ls /f, watched: zk: node does not exist
			B create /f: /f
			A events: none
			A ls /f, watched: []
			B set /f, version -1: c z1, m z2, p z1, version 1, cversion 0, aversion 0, of no session, 1 bytes, 0 children
			A events: none
			B create /f/x: /f/x
			B create /f/y: /f/y
			A events: NodeChildrenChanged /f
			A ls /f, watched: [x y]
			B set /f/y, version -1: c z3, m z4, p z3, version 1, cversion 0, aversion 0, of no session, 1 bytes, 0 children
			B create /f/y/deep: /f/y/deep
			B delete /f/y/deep, version -1: ok
			A events: none
			B delete /f/y, version -1: ok
			B delete /f/x, version -1: ok
			A events: NodeChildrenChanged /f
			A ls /f, watched: []
			B delete /f, version -1: ok
			A events: NodeDeleted /f
		`},
		{"several watches", func(s *script) {
			a, b := s.client("A", longSession), s.client("B", longSession)
			b.create("/f", "", persistent)
			b.create("/f/n", "", persistent)
			for range 2 {
				a.getW("/f/n")
				a.existsW("/f/n")
				a.listW("/f/n")
				a.listW("/f")
			}
			b.listW("/f")
			b.set("/f/n", "x", -1)
			a.hear()
			a.getW("/f/n")
			b.delete("/f/n", -1)
			a.hear() // one event for the data and the children
			b.hear()
		}, `
			B create /f: /f
			B create /f/n: /f/n
			A get /f/n, watched: ""
			A stat /f/n, watched: there
			A ls /f/n, watched: []
			A ls /f, watched: [n]
			A get /f/n, watched: ""
			A stat /f/n, watched: there
			A ls /f/n, watched: []
			A ls /f, watched: [n]
			B ls /f, watched: [n]
			B set /f/n, version -1: c z1, m z2, p z1, version 1, cversion 0, aversion 0, of no session, 1 bytes, 0 children
			A events: NodeDataChanged /f/n
			A get /f/n, watched: "x"
			B delete /f/n, version -1: ok
			A events: NodeDeleted /f/n, NodeChildrenChanged /f
			B events: NodeChildrenChanged /f
		`},
		{"the event comes before the answer", func(s *script) {
			a, b := s.client("A", longSession), s.client("B", longSession)
			a.create("/n", "", persistent)
			a.getW("/n")
			b.set("/n", "x", -1)
			a.get("/n")
			a.noteEvents()
			a.getW("/n")
			a.set("/n", "y", -1) // also to the answer of the change
			a.noteEvents()
			a.existsW("/m")
			a.create("/m", "", ephemeral)
			a.noteEvents()
			a.listW("")
			a.multi(s.opDelete("/n", -1), s.opDelete("/m", -1))
			a.noteEvents()
		}, `
			A create /n: /n
			A get /n, watched: ""
			B set /n, version -1: c z1, m z2, p z1, version 1, cversion 0, aversion 0, of no session, 1 bytes, 0 children
			A get /n: "x", c z1, m z2, p z1, version 1, cversion 0, aversion 0, of no session, 1 bytes, 0 children
			A events: NodeDataChanged /n
			A get /n, watched: "x"
			A set /n, version -1: c z1, m z3, p z1, version 2, cversion 0, aversion 0, of no session, 1 bytes, 0 children
			A events: NodeDataChanged /n
			A stat /m, watched: missing
			A create /m: /m
			A events: NodeCreated /m
			A ls /, watched: [m n]
			A multi: ok
			  DeleteRequest ""
			  DeleteRequest ""
			A events: NodeChildrenChanged /
		`},
	}
}

func sessionScripts() []zookeeperScript {
	return []zookeeperScript{
		{"session: begin, continue and close", func(s *script) {
			const xid = 5
			a := s.raw("A", longSession, 0, make([]byte, 16))
			a.request("sends a ping", -2, opPing, nil)
			a.request("creates an ephemeral node", xid, opCreate, func(p *packet) {
				p.putText(s.dir + "/e")
				p.putBuffer(nil)
				p.putInt(1)
				p.putInt(zk.PermAll)
				p.putText("world")
				p.putText("anyone")
				p.putInt(ephemeral)
			})
			watch := s.client("B", longSession)
			wrong := s.raw("another, with a wrong password", longSession, a.id, make([]byte, 16))
			wrong.next("waits")
			unknown := s.raw("another, without a session", longSession, a.id+1<<40, a.password) // far from the ids of other tests
			unknown.next("waits")
			again := s.raw("A, again,", longSession, a.id, a.password)
			a.next("waits on its old connection")
			watch.getW("/e")
			watch.exists("/e")
			again.request("closes the session", xid, opClose, nil)
			watch.hear()
			again.next("waits")
			closed := s.raw("A, a third time,", longSession, a.id, a.password)
			closed.next("waits")
		}, `
			A connects: a new session, version 0, time-out 30000 ms, password of 16 bytes, all zero: false
			A sends a ping: answer to -2, code 0, 0 more bytes
			A creates an ephemeral node: answer to 5, code 0, 43 more bytes
			another, with a wrong password connects: no session, version 0, time-out 0 ms, password of 16 bytes, all zero: true
			another, with a wrong password waits: the connection ends
			another, without a session connects: no session, version 0, time-out 0 ms, password of 16 bytes, all zero: true
			another, without a session waits: the connection ends
			A, again, connects: the same session, version 0, time-out 30000 ms, password of 16 bytes, all zero: false
			A waits on its old connection: the connection ends
			B get /e, watched: ""
			B stat /e: c z1, m z1, p z1, version 0, cversion 0, aversion 0, of A, 0 bytes, 0 children
			A, again, closes the session: answer to 5, code 0, 0 more bytes
			B events: NodeDeleted /e
			A, again, waits: the connection ends
			A, a third time, connects: no session, version 0, time-out 0 ms, password of 16 bytes, all zero: true
			A, a third time, waits: the connection ends
		`},
		{"session: close", func(s *script) {
			a, b := s.client("A", longSession), s.client("B", longSession)
			b.create("/f", "", persistent)
			a.create("/f/x", "", ephemeral)
			a.create("/f/y-", "", ephemeral|sequential)
			a.create("/f/stays", "", persistent)
			b.create("/f/of B", "", ephemeral)
			b.getW("/f/x")
			b.existsW("/f/y-0000000001")
			b.listW("/f")
			b.listW("/f/x")
			a.Close()
			b.hearSorted()
			b.list("/f")
		}, `
			B create /f: /f
			A create /f/x: /f/x
			A create /f/y-: /f/y-0000000001
			A create /f/stays: /f/stays
			B create /f/of B: /f/of B
			B get /f/x, watched: ""
			B stat /f/y-0000000001, watched: there
			B ls /f, watched: [of B stays x y-0000000001]
			B ls /f/x, watched: []
			B events: NodeChildrenChanged /f, NodeDeleted /f/x, NodeDeleted /f/y-0000000001
			B ls /f: [of B stays], c z1, m z1, p z2, version 0, cversion 6, aversion 0, of no session, 0 bytes, 2 children
		`},
		{"session: ended by another connection", func(s *script) {
			a, b := s.raw("A", longSession, 0, make([]byte, 16)), s.client("B", longSession)
			other := s.raw("another, with the session of A,", longSession, a.id, a.password)
			other.request("closes the session", 1, opClose, nil)
			a.next("waits")
			b.list("")
		}, `
			A connects: a new session, version 0, time-out 30000 ms, password of 16 bytes, all zero: false
			another, with the session of A, connects: the same session, version 0, time-out 30000 ms, password of 16 bytes, all zero: false
			another, with the session of A, closes the session: answer to 1, code 0, 0 more bytes
			A waits: the connection ends
			B ls /: [], c z1, m z1, p z1, version 0, cversion 0, aversion 0, of no session, 0 bytes, 0 children
		`},
		{"session: ended by silence", func(s *script) {
			b := s.client("B", longSession)
			a := s.raw("A", shortSession, 0, make([]byte, 16))
			a.request("creates an ephemeral node", 1, opCreate, func(p *packet) {
				p.putText(s.dir + "/e")
				p.putBuffer(nil)
				p.putInt(1)
				p.putInt(zk.PermAll)
				p.putText("world")
				p.putText("anyone")
				p.putInt(ephemeral)
			})
			b.getW("/e")
			a.next("sends nothing")
			b.await("the node is deleted", func() bool {
				exists, _, err := b.Exists(s.dir + "/e")
				return err == nil && !exists
			})
			b.noteEvents()
			late := s.raw("A, again,", shortSession, a.id, a.password)
			late.next("waits")
		}, `
			A connects: a new session, version 0, time-out 1000 ms, password of 16 bytes, all zero: false
			A creates an ephemeral node: answer to 1, code 0, 43 more bytes
			B get /e, watched: ""
			A sends nothing: the connection ends
			B events: NodeDeleted /e
			A, again, connects: no session, version 0, time-out 0 ms, password of 16 bytes, all zero: true
			A, again, waits: the connection ends
		`},
		{"session: a client after its end", func(s *script) {
			a, b := s.client("A", shortSession), s.client("B", longSession)
			a.create("/e", "", ephemeral)
			b.create("/n", "", persistent)
			before := a.SessionID()
			a.existsW("/missing")
			a.getW("/n")
			a.listW("/n")
			a.cut()
			b.await("the node is deleted", func() bool {
				exists, _, err := b.Exists(s.dir + "/e")
				return err == nil && !exists
			})
			a.mend()
			a.awaitState(zk.StateHasSession)
			a.noteStates()
			a.hearSorted()
			a.note("another session: %v", a.SessionID() != before)
			b.set("/n", "x", -1)
			b.create("/missing", "", persistent)
			a.hear() // the watches have ended with the session
			a.create("/e", "", ephemeral)
		}, `
			A create /e: /e
			B create /n: /n
			A stat /missing, watched: missing
			A get /n, watched: ""
			A ls /n, watched: []
			A states: Disconnected, Connecting, Connected, Expired, Disconnected, Connecting, Connected, HasSession
			A events: NotWatching /missing (zk: session has been expired by the server), NotWatching /n (zk: session has been expired by the server), NotWatching /n (zk: session has been expired by the server)
			another session: true
			B set /n, version -1: c z1, m z2, p z1, version 1, cversion 0, aversion 0, of no session, 1 bytes, 0 children
			B create /missing: /missing
			A events: none
			A create /e: /e
		`},
		{"session: a request while the connection is cut", func(s *script) {
			a := s.client("A", longSession)
			a.create("/n", "", persistent)
			answers := make(chan error, 1)
			a.cut()
			go func() {
				_, err := a.Set(s.dir+"/n", []byte("x"), -1)
				answers <- err
			}()
			a.mend() // the driver sends it on the next connection
			a.answer("set", <-answers, "ok")
			a.get("/n")
		}, `
			A create /n: /n
			A set: ok
			A get /n: "x", c z1, m z2, p z1, version 1, cversion 0, aversion 0, of no session, 1 bytes, 0 children
		`},
		{"session: continue within the time-out", func(s *script) {
			a, b := s.client("A", longSession), s.client("B", longSession)
			a.create("/e", "", ephemeral)
			b.create("/f", "", persistent)
			for _, n := range []string{"set", "deleted", "recreated", "same"} {
				b.create("/f/"+n, "", persistent)
			}
			b.create("/f/set/child", "", persistent)
			a.listW("/f/same")
			a.listW("/f/set")
			a.listW("/f/deleted")
			a.listW("/f")
			a.getW("/f/set")
			a.existsW("/f/deleted")
			a.getW("/f/recreated")
			a.getW("/f/same")
			a.existsW("/f/created")
			a.existsW("/f/came and went")
			a.existsW("/f/missing")
			a.cut()
			before := a.SessionID()
			b.set("/f/set", "x", -1)
			b.create("/f/set/other", "", persistent)
			b.delete("/f/deleted", -1)
			b.delete("/f/recreated", -1)
			b.create("/f/recreated", "", persistent)
			b.create("/f/created", "", persistent)
			b.create("/f/came and went", "", persistent)
			b.delete("/f/came and went", -1)
			a.mend()
			a.awaitState(zk.StateHasSession)
			a.noteStates()
			a.await("the first missed event", func() bool {
				a.mu.Lock()
				defer a.mu.Unlock()
				return len(a.events) > 0
			})
			a.hearSorted()
			a.note("the same session: %v", a.SessionID() == before)
			a.exists("/e")
			b.set("/f/set", "y", -1) // these watches have fired
			b.create("/f/deleted", "", persistent)
			a.hear()
			b.set("/f/same", "x", -1) // these have not
			b.create("/f/same/child", "", persistent)
			b.create("/f/missing", "", persistent)
			b.create("/f/came and went", "", persistent)
			a.hear()
		}, `
			A create /e: /e
			B create /f: /f
			B create /f/set: /f/set
			B create /f/deleted: /f/deleted
			B create /f/recreated: /f/recreated
			B create /f/same: /f/same
			B create /f/set/child: /f/set/child
			A ls /f/same, watched: []
			A ls /f/set, watched: [child]
			A ls /f/deleted, watched: []
			A ls /f, watched: [deleted recreated same set]
			A get /f/set, watched: ""
			A stat /f/deleted, watched: there
			A get /f/recreated, watched: ""
			A get /f/same, watched: ""
			A stat /f/created, watched: missing
			A stat /f/came and went, watched: missing
			A stat /f/missing, watched: missing
			B set /f/set, version -1: c z2, m z5, p z4, version 1, cversion 1, aversion 0, of no session, 1 bytes, 1 children
			B create /f/set/other: /f/set/other
			B delete /f/deleted, version -1: ok
			B delete /f/recreated, version -1: ok
			B create /f/recreated: /f/recreated
			B create /f/created: /f/created
			B create /f/came and went: /f/came and went
			B delete /f/came and went, version -1: ok
			A states: Disconnected, Connecting, Connected, HasSession
			A events: NodeChildrenChanged /f, NodeChildrenChanged /f/set, NodeCreated /f/created, NodeDataChanged /f/recreated, NodeDataChanged /f/set, NodeDeleted /f/deleted, NodeDeleted /f/deleted
			the same session: true
			A stat /e: c z1, m z1, p z1, version 0, cversion 0, aversion 0, of A, 0 bytes, 0 children
			B set /f/set, version -1: c z2, m z7, p z6, version 2, cversion 2, aversion 0, of no session, 1 bytes, 2 children
			B create /f/deleted: /f/deleted
			A events: none
			B set /f/same, version -1: c z3, m z8, p z3, version 1, cversion 0, aversion 0, of no session, 1 bytes, 0 children
			B create /f/same/child: /f/same/child
			B create /f/missing: /f/missing
			B create /f/came and went: /f/came and went
			A events: NodeDataChanged /f/same, NodeChildrenChanged /f/same, NodeCreated /f/missing, NodeCreated /f/came and went
		`},
	}
}
