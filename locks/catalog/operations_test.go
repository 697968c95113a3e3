package catalog_test

import (
	"context"

	"oversell/lab/backend"
	"oversell/lab/rig"
)

// operations count what each backend of the rig was asked so far, by anybody.
func operations(r *rig.Rig) map[string]func(context.Context) (int64, error) {
	at := r.Addresses()
	commands := func(ctx context.Context, urls []string) (sum int64, err error) {
		for _, url := range urls {
			n, err := backend.RedisCommands(ctx, url)
			if err != nil {
				return 0, err
			}
			sum += n
		}
		return sum, nil
	}
	return map[string]func(context.Context) (int64, error){
		"redis":     func(ctx context.Context) (int64, error) { return commands(ctx, at.Redis[:1]) },
		"redlock":   func(ctx context.Context) (int64, error) { return commands(ctx, at.Redis) },
		"zookeeper": func(ctx context.Context) (int64, error) { return backend.ZooKeeperPackets(ctx, at.Zookeeper[0]) },
		"etcd":      func(ctx context.Context) (int64, error) { return backend.EtcdMessages(ctx, at.Etcd[0]) },
		"mysql":     func(ctx context.Context) (int64, error) { return backend.MySQLQuestions(ctx, at.MySQL) },
	}
}
