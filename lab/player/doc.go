// Package player carries out plans (see package chaos) in a running lab, on several strategies at the same time, each with its own
// product, and records what every request did. It injects the faults of a plan, and waits for conditions between its
// moves. It judges nothing: package experiment does, from what was [Played]. Step mode takes one move after the other: see [Walk].
//
// Like the rest of the lab, the package sees the service only from outside. It uses HTTP, the process ids of the
// servers, and the network links between them.
package player
