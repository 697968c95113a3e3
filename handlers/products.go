package handlers

import (
	"context"
	"sync"
)

// maxSeen limits the products that a replica remembers. It looks up any other product at
// each sale.
const maxSeen = 10_000

// products remembers which products exist: the table's rows are never deleted.
type products struct {
	mu   sync.RWMutex
	seen map[int64]bool
}

// has returns an error if the product does not exist. It must be called before the lock is
// acquired: each key leaves a fence, a node or a row in the backend for ever, so requests
// for products that do not exist could fill it.
func (s *Service) has(ctx context.Context, product int64) error {
	if s.products.known(product) || s.Exists == nil {
		return nil
	}
	if err := s.Exists(ctx, product); err != nil {
		return err
	}
	s.products.learn(product)
	return nil
}

func (p *products) known(product int64) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.seen[product]
}

func (p *products) learn(product int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.seen) < maxSeen {
		p.seen[product] = true
	}
}
