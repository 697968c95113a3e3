// Package locks is the contract that every strategy keeps, and the parts that
// all of them share.
//
// A Strategy takes stock while rivals on other replicas do the same. Most are
// a Locker under Guard: acquire, read, check, write, release. A Locker grants
// a Lock, and a Lock knows how long it can be trusted.
//
// The work under a lock runs in Lock.Context, which ends with ErrLost when the lock
// is lost. Work that may outlive its lease writes with Lock.Fence as well.
//
// Three clocks run in every request and never stand for each other: the wait
// (patience in the queue), the lease (life of a grant, on the backend's clock)
// and the request's own deadline.
//
// Queue and Reentrant are decorators over any Locker. The families below this
// package (local, mysqllock, redislock, zklock) know the backends.
package locks
