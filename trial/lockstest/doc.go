// Package lockstest is the conformance suite that each strategy of the catalogue must pass. A card
// is the description of a strategy with its claims. The suite compares the card's claims about the
// contract of a Locker with what the strategy does. If the card denies a claim, the suite must
// observe the opposite. A card also names hazards, for example a crash. The experiments in
// lab/experiment test hazards, because only an injected fault shows them.
//
// A lock that several processes share must be tested with several processes. So the strategies run
// in workers, which are copies of the test binary. Workers receive commands as lines of JSON
// (Work), and can be paused, resumed and killed (Worker). The test sends the commands and compares
// the answers with the card.
//
// Contract runs the same checks without a test, for a lock that another program provides.
package lockstest
