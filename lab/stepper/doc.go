// Package stepper walks two clients through one strategy, step by step. Both buy one
// piece of the same product, each on a replica of its own, and both are stopped at every
// step that the strategy takes. Whoever holds the chalk says who goes on to the next one:
// so a class finds the lost update by hand, and [Lab.Solve] finds it by search.
//
// Every step is one of a real replica with real servers behind it. Nothing is simulated,
// so a client that cannot go on is one that really waits for the lock.
package stepper
