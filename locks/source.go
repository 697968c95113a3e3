package locks

import "embed"

// Source is what the sale of every Locker runs through, for those who want to read it.
//
//go:embed guard.go
var Source embed.FS
