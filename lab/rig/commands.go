package rig

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/alicebob/miniredis/v2/proto"
)

// protocol finds the first message of a client in data. It returns the length of the message, or 0 if the message
// is not complete, and the name of the message if it may be a lock's. Other messages, such as a heartbeat or the
// start of a connection, have no name. Data that are no message count as a whole.
type protocol func(data []byte) (length int, name string)

// protocolOf returns the protocol of a kind of server.
func protocolOf(server string) protocol {
	kind, _, _ := strings.Cut(server, "-")
	return map[string]protocol{
		"redis": redisCommand, "mysql": mysqlStatement, "postgres": postgresStatement, "pgbouncer": postgresStatement,
		"zookeeper": zookeeperRequest, "etcd": etcdRequest, StockTable: stockStatement,
	}[kind]
}

func redisCommand(data []byte) (length int, name string) {
	command, err := proto.Read(bufio.NewReader(bytes.NewReader(data)))
	switch {
	case errors.Is(err, io.EOF):
		return 0, ""
	case err != nil || data[0] != '*':
		return len(data), ""
	}
	words, err := proto.ReadStrings(command)
	if err != nil || len(words) == 0 {
		return len(command), ""
	}
	name = strings.ToUpper(words[0])
	of := []string{"PING", "HELLO", "AUTH", "CLIENT", "SELECT", "SCRIPT", "INFO", "COMMAND", "QUIT", "READONLY", "CLUSTER", "ROLE"}
	if slices.Contains(of, name) {
		return len(command), ""
	}
	return len(command), name
}

// statementName returns the first word of a statement. A statement on the stock is the sale's, not the lock's, and
// the others, which set up a connection or belong to the sale's transaction, lock nothing.
func statementName(text []byte, others ...string) string {
	if bytes.Contains(text, []byte(StockTable)) {
		return ""
	}
	word := firstWord(text)
	if slices.Contains(others, word) {
		return ""
	}
	return word
}

func firstWord(text []byte) string {
	return strings.ToUpper(string(regexp.MustCompile(`[A-Za-z]{2,}`).Find(text)))
}

// StockTable is the table of the stock, and as a text for HoldCommand: all statements on the stock, in place of the
// commands of the lock.
const StockTable = "db_stock"

func stockStatement(data []byte) (length int, name string) {
	return mysqlQuery(data, func(text []byte) string {
		if !bytes.Contains(text, []byte(StockTable)) {
			return ""
		}
		return firstWord(text)
	})
}

func mysqlStatement(data []byte) (length int, name string) {
	return mysqlQuery(data, func(text []byte) string {
		return statementName(text, "SET", "USE", "SHOW", "BEGIN", "START", "COMMIT", "ROLLBACK")
	})
}

// mysqlQuery finds a packet. The function nameOf names the text of a statement.
func mysqlQuery(data []byte, nameOf func([]byte) string) (length int, name string) {
	const head = 4 // three bytes of length, and the number of the packet
	if len(data) < head {
		return 0, ""
	}
	length = head + int(data[0]) + int(data[1])<<8 + int(data[2])<<16
	if len(data) < length {
		return 0, ""
	}
	const query, execute = 3, 0x17
	switch {
	case data[3] != 0 || length == head: // the log-in
		return length, ""
	case data[head] == query:
		return length, nameOf(data[head+1 : length])
	case data[head] == execute:
		return length, "EXECUTE"
	}
	return length, ""
}

func postgresStatement(data []byte) (length int, name string) {
	if len(data) > 0 && data[0] == 0 { // the log-in has no type
		length = frame(data, 0)
		return length, ""
	}
	if length = frame(data, 1); length == 0 {
		return 0, ""
	}
	switch data[0] {
	case 'Q':
		return length, statementName(data[5:length], "SET", "SHOW") // no stock is here: a COMMIT may be a release
	case 'B': // Execute follows it
		return length, "EXECUTE"
	}
	return length, ""
}

func zookeeperRequest(data []byte) (length int, name string) {
	if length = frame(data, 0); length == 0 {
		return 0, ""
	}
	length += 4 // which do not count themselves
	if len(data) < length {
		return 0, ""
	}
	if length < 12 {
		return length, ""
	}
	names := map[uint32]string{
		1: "create", 2: "delete", 3: "exists", 4: "getData", 5: "setData", 8: "getChildren", 9: "sync",
		12: "getChildren2", 14: "multi", 15: "create2", 19: "createContainer", 21: "createTTL",
	}
	return length, names[binary.BigEndian.Uint32(data[8:])]
}

// frame returns the length of a message whose length is in four bytes from at on, or 0 if it is not complete.
func frame(data []byte, at int) int {
	if len(data) < at+4 {
		return 0
	}
	if length := at + int(binary.BigEndian.Uint32(data[at:])); length <= len(data) {
		return length
	}
	return 0
}

// etcdRequest finds a frame of HTTP/2. The last frame of data of a request completes it. The streams of watches and
// heartbeats never end: a new watch is a message with the field 1, of bytes.
func etcdRequest(data []byte) (length int, name string) {
	const preface, head, isData, ends, message, watches = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 9, 0, 1, 9 + 5, 1<<3 | 2
	if bytes.HasPrefix([]byte(preface), data[:min(len(data), len(preface))]) {
		if len(data) < len(preface) {
			return 0, ""
		}
		return len(preface), ""
	}
	if len(data) < head {
		return 0, ""
	}
	length = head + int(data[0])<<16 + int(data[1])<<8 + int(data[2])
	if len(data) < length {
		return 0, ""
	}
	if data[3] == isData && data[4]&ends != 0 {
		return length, "request"
	}
	if data[3] == isData && length > message && data[message] == watches {
		return length, "subscribe"
	}
	return length, ""
}
