package explore

import (
	"github.com/redis/go-redis/v9"

	"oversell/api"
	"oversell/locks"
	"oversell/locks/catalog"
	"oversell/stock"
)

// Lock is a lock that is not in the catalogue: of another library, or under work.
type Lock struct {
	Card  api.Card
	build catalog.Constructor
}

// OnRedis returns a lock on one Redis. open is called once for each client of a schedule, with a connection of its own.
// The lock must do the same in each schedule: random pauses between two tries have to be replaced by fixed ones.
func OnRedis(name string, open func(redis.UniversalClient) locks.Locker) Lock {
	return foreign(name, "redis", func(b catalog.Backends) locks.Locker { return open(b.Redis) })
}

// OnRedlock returns a lock on three independent Redis. See OnRedis.
func OnRedlock(name string, open func([]redis.UniversalClient) locks.Locker) Lock {
	return foreign(name, "redlock", func(b catalog.Backends) locks.Locker { return open(b.Redlock) })
}

func foreign(name, backend string, open func(catalog.Backends) locks.Locker) Lock {
	card := api.Card{ID: name, Family: "redis", Locker: true, Backends: []string{"mysql", backend}}
	return Lock{card, func(b catalog.Backends) locks.Strategy { return locks.Guard(open(b), stock.NewLedger(b.DB)) }}
}
