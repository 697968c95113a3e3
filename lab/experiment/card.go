package experiment

import (
	"oversell/api"
	"oversell/lab/history"
)

// Leased returns the recording with the lease of the strategy's lock in a testbed. A lock on
// ZooKeeper lasts as long as its session. Recordings of earlier versions lack the lease.
func Leased(c api.Card, rec history.Recording) history.Recording {
	switch {
	case !c.Locker:
	case c.Uses("zookeeper"):
		rec.Lease, rec.Renews = ZKSession, true
	case c.Lease:
		rec.Lease, rec.Renews = Lease, c.Renews
	}
	return rec
}
