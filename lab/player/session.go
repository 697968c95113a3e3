package player

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"oversell/lab/backend"
	"oversell/lab/fault"
	"oversell/lab/history"
	"oversell/lab/rig"
)

// expire ends the session of a client's waiting request, and gives the client time to notice that. Leases in etcd are
// revoked. A session of ZooKeeper has a password, so its client is cut off until the server has expired the session.
func (p *Player) expire(ctx context.Context, client int) error {
	span := history.Span{What: "session expired", Who: ReplicaName(p.on[client]), From: p.bed.Since()}
	s := &struck{missed: errors.New("the session of a waiter did not end")}
	p.injected = append(p.injected, s)
	if p.bed.Idle {
		return nil
	}
	var own places // not every waiter has a place in a queue, so the time is limited
	_ = Within(ctx, Lease, "all waiters have a place", func() bool {
		now, err := p.bed.places(ctx)
		own = now.without(p.places)
		return err == nil && len(own) >= len(p.runs)
	})
	for _, place := range own {
		if isNode := strings.HasPrefix(place, "/"); isNode {
			continue
		}
		if err := backend.RevokeEtcdLease(ctx, p.bed.Rig.Addresses().Etcd[0], place); err != nil {
			return fmt.Errorf("end the session of a waiter: %w", err)
		}
	}
	var links []*rig.Link
	if slices.Contains(p.services(), "zookeeper") {
		links = p.bed.links(ReplicaName(p.on[client]), "zookeeper")
	}
	heal := fault.Heal(noHeal)
	if cut, ok := allOf(cuts(links)); ok {
		var err error
		if heal, err = cut.Inject(ctx); err != nil {
			return err
		}
	}
	s.missed = Within(ctx, 4*ZKSession, "the session of a waiter ends", func() bool {
		now, err := p.bed.places(ctx)
		return err == nil && len(own) > 0 && len(own.without(now)) == len(own)
	})
	s.landed = s.missed == nil
	err := heal(context.WithoutCancel(ctx))
	p.struckAt = p.bed.Since()
	_ = Within(ctx, Lease, "all waiters have left", func() bool {
		return !slices.ContainsFunc(p.runs, func(r *run) bool { return r.clients[client].running() })
	})
	span.To = p.bed.Since()
	p.spans = append(p.spans, span)
	return errors.Join(err, ctx.Err())
}

// places are the places in queues: the paths of the nodes of ZooKeeper sessions, and the leases of keys in etcd.
type places []string

func (p places) without(other places) places {
	return slices.DeleteFunc(slices.Clone(p), func(place string) bool { return slices.Contains(other, place) })
}

func (bed *Testbed) places(ctx context.Context) (places, error) {
	at := bed.Rig.Addresses()
	nodes, err1 := backend.EphemeralNodes(at.Zookeeper)
	leases, err2 := backend.EtcdLeases(ctx, at.Etcd[0])
	return slices.Concat(nodes, leases), errors.Join(err1, err2)
}
