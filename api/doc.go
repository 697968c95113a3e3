// Package api is the contract between the service and everything that uses it from
// outside: cards, steps, outcomes, answers, failpoints, and a client for one replica.
//
// It imports nothing of this module. The service (stock, locks, handlers) and the lab both
// import it, and apart from it the lab knows the service by HTTP only.
package api
