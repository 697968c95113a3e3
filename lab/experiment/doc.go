// Package experiment breaks locks on purpose. An experiment injects one hazard into a
// running lab, for every strategy at the same time, each with its own product. It records the
// history of each and gives a verdict on it. A result that contradicts the claim of the
// strategy's card is a defect of the strategy or of the card.
//
// Like the rest of the lab, the package sees the service from outside: over HTTP, and by the
// process ids of the servers and the links between them.
package experiment
