package scenario

import (
	"net/http"
	"time"

	"oversell/api"
	"oversell/lab/rig"
)

// Service has the clients for the service on which a scenario runs.
type Service struct {
	// Target sends requests to any replica, through nginx.
	Target api.Client
	// Replicas has a client for each replica.
	Replicas []api.Client
}

// Connect returns the clients for a lab. They use at most 200 connections to each server.
func Connect(addrs rig.Addresses) Service {
	const conns = 200
	client := &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: conns, MaxConnsPerHost: conns},
		Timeout:   2 * time.Minute,
	}
	service := Service{Target: api.Client{Base: addrs.Target, Token: addrs.Token, HTTP: client}}
	for _, base := range addrs.Replicas {
		service.Replicas = append(service.Replicas, api.Client{Base: base, Token: addrs.Token, HTTP: client})
	}
	return service
}

// Close closes the idle connections.
func (s Service) Close() { s.Target.HTTP.CloseIdleConnections() }
