// Package experiment breaks locks on purpose. An experiment brings about one hazard
// on a running lab, for every strategy at once, each on a product of its own; the
// recorded history of each is judged, and becomes a cell of the verdict matrix. A cell
// that contradicts what the strategy's card claims is a defect of one of the two.
//
// Like the rest of the lab it sees the service from outside: over HTTP, and by the
// process ids and the wires of the servers.
package experiment
