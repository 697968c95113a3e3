package redislock

import (
	"context"
	"fmt"
	"regexp"
	"strconv"

	"github.com/redis/go-redis/v9"
)

var flushStat = regexp.MustCompile(`cmdstat_flush(?:all|db):calls=(\d+)`)

// Flushes returns how many FLUSHALL and FLUSHDB the servers have executed since their start.
func Flushes(ctx context.Context, servers ...redis.UniversalClient) (sum int64, err error) {
	for _, server := range servers {
		stats, err := server.Info(ctx, "commandstats").Result()
		if err != nil {
			return 0, fmt.Errorf("count the flushes of redis: %w", err)
		}
		for _, found := range flushStat.FindAllStringSubmatch(stats, -1) {
			n, err := strconv.ParseInt(found[1], 10, 64)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", found[0], err)
			}
			sum += n
		}
	}
	return sum, nil
}
