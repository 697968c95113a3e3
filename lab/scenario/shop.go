package scenario

import (
	"net/http"
	"time"

	"oversell/api"
	"oversell/lab/rig"
)

// Shop is where a scenario is run.
type Shop struct {
	// Target is the balancer before the replicas.
	Target api.Client
	// Replicas are reached one by one as well: to hold requests up, and to say who asks whom.
	Replicas []api.Client
}

// At is the shop of a lab as its customers see it: 200 connections to a server, at most.
func At(addrs rig.Addresses) Shop {
	const conns = 200
	client := &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: conns, MaxConnsPerHost: conns},
		Timeout:   2 * time.Minute,
	}
	shop := Shop{Target: api.Client{Base: addrs.Target, Token: addrs.Token, HTTP: client}}
	for _, base := range addrs.Replicas {
		shop.Replicas = append(shop.Replicas, api.Client{Base: base, Token: addrs.Token, HTTP: client})
	}
	return shop
}

// Close ends its connections.
func (s Shop) Close() { s.Target.HTTP.CloseIdleConnections() }
