package scenario

import (
	"net/http"
	"time"

	"oversell/lab/replica"
	"oversell/lab/rig"
)

// Shop is where a scenario is run.
type Shop struct {
	// Target is the balancer before the replicas.
	Target replica.Replica
	// Replicas are reached one by one as well: to hold requests up, and to say who asks whom.
	Replicas []replica.Replica
}

// At is the shop of a lab as its customers see it: 200 connections to a server, at most.
func At(addrs rig.Addresses) Shop {
	const conns = 200
	client := &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: conns, MaxConnsPerHost: conns},
		Timeout:   2 * time.Minute,
	}
	shop := Shop{Target: replica.Replica{Base: addrs.Target, Token: addrs.Token, HTTP: client}}
	for _, base := range addrs.Replicas {
		shop.Replicas = append(shop.Replicas, replica.Replica{Base: base, Token: addrs.Token, HTTP: client})
	}
	return shop
}

// Close ends its connections.
func (s Shop) Close() { s.Target.HTTP.CloseIdleConnections() }
