// Package load sends requests to the service and records each of them.
//
// In a closed loop, as in JMeter, each client sends a request when the previous one is
// answered. In an open loop, requests are due at even times, and their latency counts from
// then. If all connections are busy, a request waits. A closed loop sends nothing while the
// service is stalled, so it misses the latency that users would see (coordinated omission).
//
// The package speaks HTTP/1.1 on its own sockets, at half the cost of http.Transport. And it
// never sends a request twice. Transport repeats an idempotent request when a kept connection
// turns out to be closed, but here a repeated GET sells twice.
package load
