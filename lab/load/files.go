package load

import (
	"fmt"
	"runtime"
	"syscall"
)

// RaiseOpenFiles raises this process's limit of open files, to 32768 or as far as the system allows: for root, also
// above the hard limit. The processes that it starts inherit the limit: otherwise, Go gives them the old one, which is
// 256 on macOS and 1024 on Linux. Each connection is an open file, in the client, in nginx twice, and in a replica.
func RaiseOpenFiles() {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return
	}
	for _, most := range []uint64{32768, limit.Max, 10240} { // macOS allows at most the third
		if limit.Cur >= most || syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: most, Max: max(limit.Max, most)}) == nil {
			return
		}
	}
}

// CheckOpenFiles returns an error if the clients need more open files than the limit.
func CheckOpenFiles(clients int) error {
	const others = 100 // of a server, in addition to its connections
	// A worker of nginx has two connections for each of its clients. The only worker has all clients. With more
	// workers, none was seen with more than two thirds of them.
	perClient := 1.5
	if runtime.NumCPU() == 1 {
		perClient = 2
	}
	var limit syscall.Rlimit
	need := uint64(perClient*float64(clients)) + others
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil && limit.Cur < need {
		return fmt.Errorf("clients %d: they need %d open files, and the limit is %d: raise it with ulimit -n %d, or use at most %d clients",
			clients, need, limit.Cur, need, max(1, int((float64(limit.Cur)-others)/perClient)))
	}
	return nil
}
