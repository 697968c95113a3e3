// Package experiment breaks locks on purpose. An experiment injects one hazard into a
// running lab, for every strategy at the same time, each with its own product. A hazard is a plan, which says what happens
// in which order (package chaos), or a load. The player carries the plan out and records the
// history of each strategy, which is judged. A result that contradicts the claim of the
// strategy's card is a defect of the strategy or of the card.
//
// Like the rest of the lab, the package sees the service only from outside. It uses HTTP, the
// process ids of the servers, and the network links between them.
package experiment
