// Package adapter runs a lock that is another program, in any language, as a locks.Locker. The
// program reads requests from its standard input and writes answers to its standard output, one
// JSON object a line. Its standard error is its log. docs/adapter.md describes the protocol.
//
// Program is the running program, and Adapter is the Locker above it. Serve is the other side: it
// offers a Go Locker as such a program.
package adapter
