package chaos

import "slices"

// Shrink returns a shorter plan that still fails. It removes moves, first many at a time and then one, and then the
// options of those that are left, as long as fails returns true for what remains.
func Shrink(p Plan, fails func(Plan) bool) Plan {
	for size := len(p) / 2; size > 0; size /= 2 {
		for again := true; again; again = again && size == 1 {
			shorter := removeParts(p, size, fails)
			again, p = len(shorter) < len(p), shorter
		}
	}
	for i := range p {
		for _, drop := range []func(*Move){func(m *Move) { m.Nested = false }, func(m *Move) { m.Try = false }} {
			simpler := slices.Clone(p)
			if drop(&simpler[i]); simpler[i] != p[i] && fails(simpler) {
				p = simpler
			}
		}
	}
	return p
}

// removeParts tries to remove each part of a size, the last one first: a plan that fails early has a useless end.
func removeParts(p Plan, size int, fails func(Plan) bool) Plan {
	for at := len(p) - size; at >= 0; at -= size {
		if len(p) <= size { // nothing would be left
			break
		}
		if at+size > len(p) {
			continue
		}
		if shorter := slices.Delete(slices.Clone(p), at, at+size); fails(shorter) {
			p = shorter
		}
	}
	return p
}
