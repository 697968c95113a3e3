package zklock

import (
	"strings"

	"github.com/go-zookeeper/zk"
)

// The following methods are those of the driver, for paths below the chroot. Call them in do, which authenticates the
// session before.

func (s *Session) full(node string) string {
	if s.chroot != "" && node == "/" {
		return s.chroot
	}
	return s.chroot + node
}

// Create creates a node, and returns its path with the sequence number. The server deletes a container
// (zk.FlagContainer) some time after its last child.
func (s *Session) Create(node string, data []byte, flags int32, acl []zk.ACL) (string, error) {
	create := s.conn.Create
	if flags == zk.FlagContainer {
		create = s.conn.CreateContainer
	}
	made, err := create(s.full(node), data, flags, acl)
	return strings.TrimPrefix(made, s.chroot), err
}

// Exists reports whether a node exists.
func (s *Session) Exists(node string) (bool, *zk.Stat, error) { return s.conn.Exists(s.full(node)) }

// Children returns the names of a node's children.
func (s *Session) Children(node string) ([]string, *zk.Stat, error) {
	return s.conn.Children(s.full(node))
}

// ChildrenW is Children with a watch.
func (s *Session) ChildrenW(node string) ([]string, *zk.Stat, <-chan zk.Event, error) {
	return s.conn.ChildrenW(s.full(node))
}

// Get returns the data of a node.
func (s *Session) Get(node string) ([]byte, *zk.Stat, error) { return s.conn.Get(s.full(node)) }

// GetW is Get with a watch.
func (s *Session) GetW(node string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	return s.conn.GetW(s.full(node))
}

// Set replaces the data of a node.
func (s *Session) Set(node string, data []byte, version int32) (*zk.Stat, error) {
	return s.conn.Set(s.full(node), data, version)
}

// Delete deletes a node.
func (s *Session) Delete(node string, version int32) error {
	return s.conn.Delete(s.full(node), version)
}

// Multi sends several requests in one transaction. The answers have the paths of the server.
func (s *Session) Multi(requests ...any) ([]zk.MultiResponse, error) {
	below := make([]any, len(requests))
	for i, request := range requests {
		switch r := request.(type) {
		case *zk.CreateRequest:
			below[i] = &zk.CreateRequest{Path: s.full(r.Path), Data: r.Data, Acl: r.Acl, Flags: r.Flags}
		case *zk.SetDataRequest:
			below[i] = &zk.SetDataRequest{Path: s.full(r.Path), Data: r.Data, Version: r.Version}
		case *zk.DeleteRequest:
			below[i] = &zk.DeleteRequest{Path: s.full(r.Path), Version: r.Version}
		case *zk.CheckVersionRequest:
			below[i] = &zk.CheckVersionRequest{Path: s.full(r.Path), Version: r.Version}
		default:
			below[i] = request // the driver rejects it
		}
	}
	return s.conn.Multi(below...)
}
