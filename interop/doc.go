// Package interop tests that a Java service and a Go replica can share a lock: the strategy
// redis is compatible with Redisson's RLock, and zk with Curator's InterProcessMutex. The tests
// run a small Java program with current versions of these libraries and with the tutorial's.
//
//	make interop
//
// Both sides must only use the same name:
//
//	strategy  Java                                                Go
//	redis     client.getLock("redis:stock:1")                     key stock:1
//	zk        new InterProcessMutex(curator, "/oversell/zk/stock:1")  key stock:1
//
// # What is shared and what is not
//
// Shared are the lock, the queue, the notification of waiters, the lease, and its expiry when
// the holder dies. Each side counts its own re-entries. Fencing tokens exist in Go only, so the
// row does not reject the late write of a Java holder.
//
// On a Redis Cluster, Redisson may publish with SPUBLISH. Then neither side would be notified
// of the other's release. The strategy redis is for a single Redis.
package interop
