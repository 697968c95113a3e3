// Package stepper leads two clients through one strategy, step by step. Both buy one piece of
// the same product, each on a replica of its own, and both stop at every step of the strategy.
// The user chooses which client continues, and so finds the lost update by hand. [Lab.Solve]
// finds it by search.
//
// Every step is a step of a real replica with real servers behind it: a client that does not
// continue waits for a real lock.
package stepper
