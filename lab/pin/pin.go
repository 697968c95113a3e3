// Package pin keeps the load and the servers that it measures on cores of their own. Otherwise each would wait for
// cores that the other has.
package pin

// divide returns the cores of the load, a quarter of them and at least one, and of the servers. Of one or two cores,
// each would have too few: then it returns none.
func divide(cores []int) (servers, load []int) {
	if len(cores) <= 2 {
		return nil, nil
	}
	n := len(cores) - max(1, len(cores)/4)
	return cores[:n], cores[n:]
}
