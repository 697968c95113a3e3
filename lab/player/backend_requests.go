package player

import (
	"context"

	"oversell/lab/backend"
)

// OwnCost returns the requests of one reading of the counters. It measures them at its first call, when no other load may run.
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

// CountRequests returns the requests to the backends so far. Of the difference between two readings, OwnCost are those
// of a reading.
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
