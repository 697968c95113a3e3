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
		}},
		{"create without data", func(s *script) {
			a := s.client("A", longSession)
			for _, data := range [][]byte{nil, {}} {
				node := "/" + strconv.FormatBool(data == nil)
				_, err := a.Create(s.dir+node, data, persistent, zk.WorldACL(zk.PermAll))
				a.answer("create "+node, err, "ok")
				got, stat, err := a.Get(s.dir + node)
				a.answer("get "+node, err, "nil %v, %d bytes", got == nil, stat.DataLength)
			}
		}},
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
		}},
		{"sequence numbers in a new folder of the same name", func(s *script) {
			a := s.client("A", longSession)
			a.create("/q", "", persistent)
			first := a.create("/q/n-", "", sequential)
			a.delete(first, -1)
			a.delete("/q", -1)
			a.create("/q", "", persistent)
			a.create("/q/n-", "", sequential)
		}},
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
		}},
		{"an ephemeral node of another session", func(s *script) {
			a, b := s.client("A", longSession), s.client("B", longSession)
			a.create("/e", "of A", ephemeral)
			b.get("/e")
			b.create("/e", "of B", ephemeral)
			b.set("/e", "by B", 0)
			b.delete("/e", 1)
			a.delete("/e", -1)
		}},
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
		}},
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
		}},
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
		}},
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
		}},
		{"multi: one fails in the middle", func(s *script) {
			a := s.client("A", longSession)
			a.create("/f", "", persistent)
			a.create("/old", "", persistent)
			a.getW("/old")
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
		}},
		{"multi: checks only", func(s *script) {
			a := s.client("A", longSession)
			a.create("/n", "", persistent)
			a.multi(s.opCheck("/n", 0), s.opCheck("/n", -1))
			a.multi(s.opCheck("/n", 1), s.opCheck("/n", -1))
			a.multi()
		}},
		{"multi: create and delete", func(s *script) {
			a := s.client("A", longSession)
			a.multi(s.opCreate("/n", "", ephemeral), s.opDelete("/n", 0), s.opCreate("/n", "", persistent), s.opDelete("/n", 0))
			a.hear()
			a.exists("/n")
			a.create("/n-", "", sequential)
		}},
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
		}},
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
		}},
		{"several watches", func(s *script) {
			a, b := s.client("A", longSession), s.client("B", longSession)
			b.create("/f", "", persistent)
			b.create("/f/n", "", persistent)
			for range 2 {
				a.getW("/f/n")
			}
			b.getW("/f/n")
			b.set("/f/n", "x", -1)
			a.hear()
			a.getW("/f/n")
			b.delete("/f/n", -1)
			a.hear()
			b.hear()
		}},
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
			a.getW("/n")
			a.multi(s.opDelete("/n", -1))
			a.noteEvents()
		}},
	}
}

func sessionScripts() []zookeeperScript {
	return []zookeeperScript{
		{"session: begin, continue and close", func(s *script) {
			const xid = 5
			a := s.raw("A", longSession, 0, make([]byte, 16))
			a.request("sends a ping", -2, opPing, nil)
			a.request("creates an ephemeral node", xid, opCreate, func(p *packet) {
				p.put(s.dir+"/e", []byte(nil), int32(1), int32(zk.PermAll), "world", "anyone", int32(ephemeral))
			})
			watch := s.client("B", longSession)
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
		}},
		{"session: close", func(s *script) {
			a, b := s.client("A", longSession), s.client("B", longSession)
			b.create("/f", "", persistent)
			a.create("/f/x", "", ephemeral)
			a.create("/f/y-", "", ephemeral|sequential)
			a.create("/f/stays", "", persistent)
			b.create("/f/of B", "", ephemeral)
			b.getW("/f/x")
			b.getW("/f/y-0000000001")
			a.Close()
			b.hearSorted()
			b.list("/f")
		}},
		{"session: ended by another connection", func(s *script) {
			a, b := s.raw("A", longSession, 0, make([]byte, 16)), s.client("B", longSession)
			other := s.raw("another, with the session of A,", longSession, a.id, a.password)
			other.request("closes the session", 1, opClose, nil)
			a.next("waits")
			b.list("")
		}},
		{"session: ended by silence", func(s *script) {
			b := s.client("B", longSession)
			a := s.raw("A", shortSession, 0, make([]byte, 16))
			a.request("creates an ephemeral node", 1, opCreate, func(p *packet) {
				p.put(s.dir+"/e", []byte(nil), int32(1), int32(zk.PermAll), "world", "anyone", int32(ephemeral))
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
		}},
		{"session: a client after its end", func(s *script) {
			a, b := s.client("A", shortSession), s.client("B", longSession)
			a.create("/e", "", ephemeral)
			b.create("/n", "", persistent)
			before := a.SessionID()
			a.getW("/n")
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
		}},
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
		}},
		{"session: continue within the time-out", func(s *script) {
			a, b := s.client("A", longSession), s.client("B", longSession)
			a.create("/e", "", ephemeral)
			b.create("/f", "", persistent)
			for _, n := range []string{"set", "deleted", "recreated", "same"} {
				b.create("/f/"+n, "", persistent)
			}
			b.create("/f/set/child", "", persistent)
			a.getW("/f/set")
			a.getW("/f/deleted")
			a.getW("/f/recreated")
			a.getW("/f/same")
			a.cut()
			before := a.SessionID()
			b.set("/f/set", "x", -1)
			b.create("/f/set/other", "", persistent)
			b.delete("/f/deleted", -1)
			b.delete("/f/recreated", -1)
			b.create("/f/recreated", "", persistent)
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
			a.hear()
		}},
	}
}
