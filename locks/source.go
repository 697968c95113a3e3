package locks

import "embed"

// Source has the code that the sale of every Locker runs through, for display.
//
//go:embed guard.go
var Source embed.FS
