// Package locks defines the contract of all strategies, and contains the code that they share.
//
// A Strategy takes pieces from the stock while requests on other replicas do the same. In most
// strategies, Guard makes the sale with a Locker: it acquires the lock, reads the count, checks it,
// writes the new count and releases the lock. A Locker grants a Lock. The Lock reports when it can
// no longer be trusted.
//
// The work under a lock runs in Lock.Context, which ends with ErrLost when the lock is lost. Work
// that may outlive its lease also passes Lock.Fence to its write, so a late write is rejected.
//
// Each request has three time-outs, and none replaces another: the wait for the lock, the lease of
// the grant (on the backend's clock), and the deadline of the request itself.
//
// Queue, Reentrant, Multi and Cohort are decorators over any Locker. The packages below this one
// (local, mysqllock, redislock, zklock, etcdlock) contain the strategies, grouped by backend.
package locks
