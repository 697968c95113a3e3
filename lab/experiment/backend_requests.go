package experiment

import (
	"context"

	"oversell/lab/backend"
)

// measureOwnCost measures the requests of one reading of the counters, while no other load runs.
func (bed *Testbed) measureOwnCost(ctx context.Context) error {
	first, err := bed.countRequests(ctx)
	for range 5 {
		var next int64
		if next, err = bed.countRequests(ctx); err != nil {
			return err
		}
		// A heartbeat may increase a difference, so the smallest difference is the right one.
		if cost := next - first; bed.ownCost == 0 || cost < bed.ownCost {
			bed.ownCost = cost
		}
		first = next
	}
	return err
}

// countRequests returns the requests to the backends so far. Of the difference between two readings, ownCost are those
// of a reading.
func (bed *Testbed) countRequests(ctx context.Context) (sum int64, err error) {
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
