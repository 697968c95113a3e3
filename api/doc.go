// Package api is the contract between the service and its clients: cards, steps, outcomes,
// answers, failpoints, and a client for one replica.
//
// Package api imports no other package of this module. The service (stock, locks, handlers) and the
// lab import package api. The lab imports no other package of the service: it uses the service only
// over HTTP.
package api
