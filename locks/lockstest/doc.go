// Package lockstest is the conformance suite that every entry of the catalogue
// goes through, and any new strategy with it. It takes a card at its word: what
// the card claims must be seen, and where it says no, the opposite must be seen.
//
// A lock that is shared between processes can only be tried by processes. The
// suite does all its locking in workers: copies of the test binary that take
// commands as JSON lines (Work) and can be stopped, woken and killed for real
// (Worker). The test itself only gives orders and compares what came back with
// the card.
//
// The table of checks is in checks.go. A check that needs a limit in time takes
// the subject's Patience, which is generous: it says "never", not "slow".
package lockstest
