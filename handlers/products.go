package handlers

import (
	"context"
	"sync"
)

// maxSeen bounds the products that a replica remembers. Any further one is looked for at
// each sale.
const maxSeen = 10_000

// products remembers which products are in the table: none is ever deleted there.
type products struct {
	mu   sync.RWMutex
	seen map[int64]bool
}

// has looks for the product before anything is locked. A lock's name costs something in
// its backend for good: a fence, a folder, a row. Without this look, anybody could fill
// the servers with products that do not exist.
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
