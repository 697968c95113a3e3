// Package locks is the contract that every strategy keeps, and the parts that all of them share.
//
// A Strategy takes stock while requests on other replicas do the same. Most are a Locker
// under Guard: acquire, read, check, write, release. A Locker grants a Lock, and the Lock
// reports when it can no longer be trusted.
//
// The work under a lock runs in Lock.Context, which ends with ErrLost when the lock
// is lost. Work that may outlive its lease writes with Lock.Fence as well.
//
// Each request has three time-outs, and none replaces another: the wait for the lock, the
// lease of the grant (on the backend's clock), and the deadline of the request itself.
//
// Queue, Reentrant, Multi and Cohort are decorators over any Locker. The packages below this
// one (local, mysqllock, redislock, zklock, etcdlock) implement Lockers, one backend each.
package locks
