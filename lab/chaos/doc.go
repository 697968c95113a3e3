// Package chaos draws random plans for a lock, and shrinks those that find a bug.
//
// A plan is a list of moves: a client begins a sale and stops at a step of it, another one begins, a process is
// frozen, the second command of an acquisition is held back, a lease passes, the process resumes. The moves come one
// after the other, and a request stops at its step by itself, so a plan repeats without a clock. The experiments of
// package experiment are plans that somebody thought of; this package draws those that nobody did.
//
// Each seed draws its own weights, and the few faults that it uses: so no mix hides another (Groce et al., "Swarm
// Testing", ISSTA 2012). Package experiment carries plans out, and judges what was recorded. This package needs no
// server: it has the plans, their words, the shrinking, and the count of faults that landed.
package chaos
