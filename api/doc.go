// Package api is the contract between the service and its clients: cards, steps, outcomes,
// answers, failpoints, and a client for one replica.
//
// Package api imports no package of this module. The lab uses the service (stock, locks, handlers)
// only over HTTP and through package api.
package api
