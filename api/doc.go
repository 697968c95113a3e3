// Package api is the contract between the service and its clients: cards, steps, outcomes,
// answers, failpoints, and a client for one replica.
//
// It imports no other package of this module. The service (stock, locks, handlers) and the lab
// import it. Apart from this package, the lab uses the service over HTTP only.
package api
