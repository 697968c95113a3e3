package explore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"time"

	"github.com/go-zookeeper/zk"
)

// forward sends a request to the real server. It notes the folders, which decides whether a create waits
// for the schedule, see forFolders.
func (e *ensemble) forward(l *link, o operation, b []byte) {
	if o.kind == opCreate && o.flags == zk.FlagPersistent {
		e.nodes[o.path] = znode{}
	}
	l.forward(b)
}

// begun forwards the first answer of a real server, and notes the session in it.
func (e *ensemble) begun(l *link, from io.Reader) error {
	frame, err := readFrame(from)
	if err != nil {
		return err
	}
	p := packet{bytes: frame[4:]}
	p.int()
	timeout, id, secret := time.Duration(p.int())*time.Millisecond, p.long(), p.buffer()
	if p.short {
		return errPacket
	}
	e.w.mu.Lock()
	if id != 0 {
		l.session = id
		e.sessions[id] = &session{id: id, secret: secret, client: l.client, timeout: timeout, on: l}
	}
	e.w.mu.Unlock()
	_, err = serverEnd{l}.Write(frame)
	return err
}

// readFrame reads a packet, with its length before it.
func readFrame(from io.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(from, size[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, 4+binary.BigEndian.Uint32(size[:]))
	copy(frame, size[:])
	_, err := io.ReadFull(from, frame[4:])
	return frame, err
}

// endReally closes a client's session in the client's name, and its connection, as the server does when
// a session has expired.
func (e *ensemble) endReally(s *session) {
	delete(e.sessions, s.id)
	if err := endSessionOn(e.w.real.zk, s); err != nil {
		e.w.real.failed = errors.Join(e.w.real.failed, fmt.Errorf("explore: end a session of ZooKeeper: %w", err))
	}
	s.on.breakNow()
}

func endSessionOn(addr string, s *session) error {
	conn, err := connectTo(addr)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(longestWait)); err != nil {
		return err
	}
	var begin, end packet
	begin.putInt(0)
	begin.putLong(0)
	begin.putInt(int32(s.timeout.Milliseconds())) //nolint:gosec // as it was received
	begin.putLong(s.id)
	begin.putBuffer(s.secret)
	end.putInt(1)
	end.putInt(opClose)
	for _, p := range []packet{begin, end} {
		frame := binary.BigEndian.AppendUint32(nil, uint32(len(p.bytes))) //nolint:gosec // both are short
		if _, err := conn.Write(append(frame, p.bytes...)); err != nil {
			return err
		}
		if _, err := readFrame(conn); err != nil {
			return err
		}
	}
	return nil
}

// emptyZooKeeper deletes all nodes but ZooKeeper's own.
func emptyZooKeeper(addr string) error {
	conn, _, err := zk.Connect([]string{addr}, longestWait, zk.WithLogInfo(false))
	if err != nil {
		return err
	}
	defer conn.Close()
	return deleteBelow(conn, "/")
}

func deleteBelow(conn *zk.Conn, dir string) error {
	names, _, err := conn.Children(dir)
	for _, name := range names {
		if dir == "/" && name == "zookeeper" {
			continue
		}
		at := path.Join(dir, name)
		if err := errors.Join(deleteBelow(conn, at), conn.Delete(at, -1)); err != nil {
			return err
		}
	}
	return err
}
