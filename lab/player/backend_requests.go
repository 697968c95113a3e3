package player

import (
	"context"

	"oversell/lab/backend"
)

// OwnCost returns the number of requests that one call of CountRequests itself sends to the backends. The first call
// measures this number: no other load may run then.
func (bed *Testbed) OwnCost(ctx context.Context) (int64, error) {
	if bed.ownCost > 0 {
		return bed.ownCost, nil
	}
	first, err := bed.CountRequests(ctx)
	for range 5 {
		var next int64
		if next, err = bed.CountRequests(ctx); err != nil {
			return 0, err
		}
		// A heartbeat may increase a difference, so the smallest difference is the right one.
		if cost := next - first; bed.ownCost == 0 || cost < bed.ownCost {
			bed.ownCost = cost
		}
		first = next
	}
	return bed.ownCost, err
}

// CountRequests returns the number of requests that the backends have received so far. The difference between two calls
// includes OwnCost requests, which CountRequests itself has sent.
func (bed *Testbed) CountRequests(ctx context.Context) (sum int64, err error) {
	at := bed.Rig.Addresses()
	for _, kind := range []struct {
		count   func(context.Context, string) (int64, error)
		servers []string
	}{
		{backend.RedisCommands, at.Redis},
		{backend.ZooKeeperPackets, at.Zookeeper},
		{backend.EtcdMessages, at.Etcd},
		{backend.MySQLQuestions, []string{at.MySQL}},
	} {
		for _, server := range kind.servers {
			n, err := kind.count(ctx, server)
			if err != nil {
				return 0, err
			}
			sum += n
		}
	}
	return sum, nil
}
