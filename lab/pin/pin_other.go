//go:build !linux

package pin

// Apart pins nothing, and returns no cores: see pin_linux.go.
func Apart() (load int, servers []int, err error) { return 0, nil, nil }

// Thread pins nothing.
func Thread([]int) (undo func(), err error) { return func() {}, nil }
