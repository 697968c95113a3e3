// Package interop tests that a Java service and a Go replica can share a lock. The strategy redis
// is compatible with Redisson's RLock, and zk with Curator's InterProcessMutex. The tests run a
// small Java program with the libraries' current versions and with the tutorial's. Another test runs the
// Spring Boot program in the folder spring beside a lab, as a student does. TestVegeta compares the load generator of
// `oversell run` with another one.
//
//	make interop
//
// Java and Go need only use the same name of the lock:
//
//	strategy  Java                                                Go
//	redis     client.getLock("redis:stock:1")                     key stock:1
//	zk        new InterProcessMutex(curator, "/oversell/zk/stock:1")  key stock:1
//
// # What is shared and what is not
//
// Java and Go share the lock, the queue, the notification of waiters, the lease, and its expiry
// after the holder's death. Each side counts its own re-entries. Only Go has fencing tokens, so the
// row does not reject the late write of a Java holder.
//
// On a Redis Cluster, Redisson may publish with SPUBLISH. Java and Go would then not be notified of
// each other's releases. The strategy redis is for a single Redis.
package interop
