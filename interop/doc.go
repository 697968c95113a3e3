// Package interop proves that a Java service and a Go replica share one lock: the
// strategy redis is Redisson's RLock, and the strategy zk is Curator's
// InterProcessMutex. Its tests run a small Java program on the libraries themselves,
// of today and of the tutorial, against the same servers as our own locks.
//
//	make interop
//
// What both sides must agree on is a name, and no more:
//
//	strategy  Java                                                Go
//	redis     client.getLock("redis:stock:1")                     key stock:1
//	zk        new InterProcessMutex(curator, "/oversell/zk/stock:1")  key stock:1
//
// # What is shared and what is not
//
// The lock, its waiting, its wake-up, its lease and its end with a dead holder are
// shared, and both sides count what their own task has entered. The fence is Go's
// alone: Redisson and Curator hand out none, so a Java write is not refused after
// its holder was paused past the lease.
//
// Redisson on a Redis Cluster may send its messages by SPUBLISH: there, neither side
// would hear the other before the lease is over. The strategy redis is for one Redis.
package interop
