package explore

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"

	"oversell/stock"
)

// The operations of the protocol (zookeeper.jute, ZooDefs.OpCode).
const (
	opCreate, opDelete, opExists, opGet, opSet     int32 = 1, 2, 3, 4, 5
	opPing, opList, opCheck, opMulti, opSetWatches int32 = 11, 12, 13, 14, 101
	opClose, opFailed                              int32 = -11, -1
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

func (p *packet) texts() (all []string) {
	for n := p.int(); n > 0 && !p.short; n-- {
		all = append(all, p.text())
	}
	return all
}

// put writes fields: numbers, bools, texts, buffers, and structs of numbers.
func (p *packet) put(fields ...any) {
	for _, field := range fields {
		switch f := field.(type) {
		case string:
			p.put([]byte(f))
		case []byte:
			length := int32(len(f)) //nolint:gosec // the locks store little
			if f == nil {
				length = -1
			}
			p.put(length)
			p.bytes = append(p.bytes, f...)
		default:
			p.bytes, _ = binary.Append(p.bytes, binary.BigEndian, f) // no error: its size is fixed
		}
	}
}

// operation is a request of a client, or one of the operations of a multi.
type operation struct {
	kind           int32
	path           string
	data           []byte
	flags, version int32
	watch          bool
	parts          []operation // of a multi
	watches        []string    // of setWatches: on the data of these nodes
	seen           int64       // of setWatches: the zxid of the last answer that the client has received
}

// operation reads a request. The access list of a new node allows everything, so it is not kept.
func (p *packet) operation(kind int32) (o operation) {
	o.kind = kind
	switch kind {
	case opMulti:
		for kind, done := p.header(); !done && !p.short; kind, done = p.header() {
			o.parts = append(o.parts, p.operation(kind))
		}
	case opSetWatches:
		o.seen, o.watches = p.long(), p.texts() // no lock has other watches
	case opCreate:
		o.path, o.data = p.text(), p.buffer()
		for n := p.int(); n > 0 && !p.short; n-- {
			p.int()
			p.text()
			p.text()
		}
		o.flags = p.int()
	case opSet:
		o.path, o.data, o.version = p.text(), p.buffer(), p.int()
	case opDelete, opCheck:
		o.path, o.version = p.text(), p.int()
	case opExists, opGet, opList:
		o.path, o.watch = p.text(), p.bool()
	}
	return o
}

// header reads what precedes each operation of a multi. done is true at the end.
func (p *packet) header() (kind int32, done bool) {
	kind, done = p.int(), p.bool()
	p.int()
	return kind, done
}

// String describes the operation, the same in each repetition of a schedule.
func (o operation) String() string {
	if o.kind == opMulti {
		var all []string
		for _, part := range o.parts {
			all = append(all, part.String())
		}
		return strings.Join(all, ", ")
	}
	text := map[int32]string{
		opCreate: "create ", opDelete: "delete ", opSet: "set ", opCheck: "check ", opExists: "stat ", opGet: "get ", opList: "ls ",
	}[o.kind] + stock.WithoutTokens(o.path)
	if o.watch {
		text += ", watched"
	}
	return text
}

// writes reports whether the operation changes what the server stores. A watch is an entry there, too.
func (o operation) writes() bool {
	return o.watch || !slices.Contains([]int32{opCheck, opExists, opGet, opList}, o.kind)
}
