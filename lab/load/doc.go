// Package load drives a closed loop as JMeter does: N clients, each of which asks again
// as soon as it has its answer, and each with one keep-alive connection of its own.
//
// With a rate it drives an open loop: requests are due at even times, whatever the
// answers do, and one that finds all connections busy waits. Its latency counts from when
// it was due. A closed loop asks nobody while the shop stands still, and so leaves out
// just what its customers would have felt (Gil Tene's coordinated omission; wrk2).
//
// It speaks HTTP/1.1 on its own sockets. That costs half of what net/http's Transport
// does, which matters where the load shares two cores with what it measures, and it has
// the one property that this lab can't do without: a request is sent at most once.
// Transport sends an idempotent request again when a kept connection turns out to be
// dead, and in this shop a repeated GET sells twice.
package load
