package rig

import (
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
)

// TestCommands checks which messages count as a lock's commands, for each protocol.
func TestCommands(t *testing.T) {
	t.Parallel()
	del, ping := "*2\r\n$3\r\ndel\r\n$4\r\nlock\r\n", "*1\r\n$4\r\nPING\r\n"
	query := func(sql string) string { return string([]byte{byte(len(sql) + 1), 0, 0, 0, 3}) + sql }
	postgres := func(kind, text string) string { return kind + string([]byte{0, 0, 0, byte(len(text) + 4)}) + text }
	node := func(kind byte) string { return string([]byte{0, 0, 0, 10, 0, 0, 0, 1, 0, 0, 0, kind, 1, 2}) }
	grpc := func(flags byte) string { return string([]byte{0, 0, 2, 0, flags, 0, 0, 0, 1, 7, 7}) }
	for _, test := range []struct {
		server, data string
		length       int
		name         string
	}{
		{"redis-1", "", 0, ""},
		{"redis-1", del[:len(del)-1], 0, ""},
		{"redis-1", del + ping, len(del), "DEL"},
		{"redis-1", ping, len(ping), ""},
		{"redis-1", "tail of a value\r\n*1", 19, ""},
		{"redis-1", "*1\r\n$x\r\n", 8, ""},
		{"mysql", query("INSERT INTO held VALUES (1)")[:9], 0, ""},
		{"mysql", query("INSERT INTO held VALUES (1)"), 32, "INSERT"},
		{"mysql", query("UPDATE db_stock SET count = 1"), 34, ""},
		{"mysql", query("SET autocommit = 1"), 23, ""},
		{StockTable, query("UPDATE db_stock SET count = 1"), 34, "UPDATE"},
		{StockTable, query("INSERT INTO held VALUES (1)"), 32, ""},
		{"mysql", string([]byte{1, 0, 0, 0, 14}), 5, ""},
		{"mysql", string([]byte{2, 0, 0, 1, 3, 3}), 6, ""},
		{"postgres", string([]byte{0, 0, 0, 8, 4, 210, 22, 47}), 8, ""},
		{"postgres", postgres("Q", "DELETE FROM held"), 21, "DELETE"},
		{"pgbouncer", postgres("B", "xx"), 7, "EXECUTE"},
		{"postgres", postgres("S", "")[:3], 0, ""},
		{"zookeeper-2", node(1), 14, "create"},
		{"zookeeper-2", node(11), 14, ""},
		{"zookeeper-2", node(1)[:13], 0, ""},
		{"etcd-1", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + grpc(1), 24, ""},
		{"etcd-1", grpc(1), 11, "request"},
		{"etcd-1", grpc(0), 11, ""},
		{"etcd-1", string([]byte{0, 0, 7, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 2, 0x0a, 0}), 16, "subscribe"},
		{"etcd-1", string([]byte{0, 0, 7, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 2, 0x08, 1}), 16, ""}, // a heartbeat
		{"redis-1", "*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nx\r\n", 26, "SUBSCRIBE"},
	} {
		if length, name := protocolOf(test.server)([]byte(test.data)); length != test.length || name != test.name {
			t.Errorf("%s, %q: %d %q, want %d %q", test.server, test.data, length, name, test.length, test.name)
		}
	}
}

// TestDeliveryWithoutClient delivers a command whose client has closed the connection: the server has time to carry it
// out before the connection ends, as with a command that is late on a network.
func TestDeliveryWithoutClient(t *testing.T) {
	t.Parallel()
	input, output := make(chan *stream.StreamChunk), make(chan *stream.StreamChunk, 1)
	stub, held := toxics.NewToxicStub(input, output), &HeldCommand{&commandGate{Server: "redis-1", Nth: 1}}
	stub.State = new(arriving)
	go held.gate.Pipe(stub)
	input <- &stream.StreamChunk{Data: []byte("*1\r\n$3\r\nDEL\r\n")}
	close(input)
	for held.Name() == "" {
		time.Sleep(time.Millisecond)
	}
	held.Deliver()
	<-output
	select {
	case <-output:
		t.Error("the connection ends with its last command")
	case <-time.After(100 * time.Millisecond): // the connection shows that it has ended only in this time
	}
}

// TestRemovalFromADeadConnection removes toxics that have data for a connection whose other end is gone: nothing reads them.
func TestRemovalFromADeadConnection(t *testing.T) {
	t.Parallel()
	for name, toxic := range map[string]toxics.Toxic{"gate": &commandGate{Server: "redis-1", Nth: 2}, "loss": &loss{Gated: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			input := make(chan *stream.StreamChunk)
			stub := toxics.NewToxicStub(input, make(chan *stream.StreamChunk))
			if stateful, ok := toxic.(toxics.StatefulToxic); ok {
				stub.State = stateful.NewState()
			}
			go stub.Run(&toxics.ToxicWrapper{Toxic: toxic, Toxicity: 1})
			input <- &stream.StreamChunk{Data: []byte("*1\r\n$3\r\nDEL\r\n")}
			removed := make(chan bool)
			go func() { removed <- stub.InterruptToxic() }()
			select {
			case <-removed:
			case <-time.After(time.Minute):
				t.Error("the toxic cannot be removed")
			}
		})
	}
}
