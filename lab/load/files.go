package load

import (
	"fmt"
	"syscall"
)

// RaiseOpenFiles raises this process's limit of open files, to 32768 or as far as the system allows. The processes
// that it starts inherit the limit: otherwise, Go gives them the old one, which is 256 on macOS and 1024 on Linux. Each
// connection is an open file, in the client, in nginx twice, and in a replica.
func RaiseOpenFiles() {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return
	}
	for _, most := range []uint64{32768, 10240} { // macOS allows at most the second
		most = min(limit.Max, most)
		if limit.Cur >= most || syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: most, Max: limit.Max}) == nil {
			return
		}
	}
}

// CheckOpenFiles returns an error if the clients need more open files than the limit.
func CheckOpenFiles(clients int) error {
	const others = 100 // of a server, in addition to its connections
	var limit syscall.Rlimit
	need := uint64(2*clients + others) //nolint:gosec // positive
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil && limit.Cur < need {
		return fmt.Errorf("clients %d: they need %d open files, and the limit is %d: raise it with ulimit -n %d, or use at most %d clients",
			clients, need, limit.Cur, need, max(1, (int(limit.Cur)-others)/2)) //nolint:gosec // small
	}
	return nil
}
