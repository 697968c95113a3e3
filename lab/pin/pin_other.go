//go:build !linux

package pin

// Apart pins nothing, and returns no cores: see pin_linux.go.
func Apart() (servers, load []int, err error) { return nil, nil, nil }

// Thread pins nothing.
func Thread([]int) (undo func(), err error) { return func() {}, nil }
