// Package lockstest is the conformance suite that each strategy of the catalogue must pass. It
// compares the claims of a card about the contract of a Locker with what the strategy does. If the
// card denies a claim, the suite must observe the opposite. Hazards need a fault, so the
// experiments in lab/experiment judge them.
//
// A lock that several processes share must be tested with several processes. So the strategies run
// in workers, which are copies of the test binary. Workers receive commands as lines of JSON
// (Work), and can be paused, resumed and killed (Worker). The test sends the commands and compares
// the answers with the card.
package lockstest
