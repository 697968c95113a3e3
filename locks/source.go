package locks

import "embed"

// Source has the files whose functions the strategies share, for display.
//
//go:embed cohort.go guard.go lock.go multi.go queue.go reentrant.go release.go transaction.go
var Source embed.FS
