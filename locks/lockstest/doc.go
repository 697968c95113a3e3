// Package lockstest is the conformance suite that each strategy of the catalogue must pass. It
// compares the claims of a card about the contract of a Locker with what the strategy does.
// Where the card says no, the suite must observe the opposite. Hazards, which need a fault, are
// judged by the experiments in lab/experiment.
//
// Locks that are shared between processes need processes to test them. So the strategies run in
// workers, which are copies of the test binary. They receive commands as lines of JSON (Work), and
// can be paused, resumed and killed (Worker). The test itself sends the commands and compares the
// answers with the card.
package lockstest
