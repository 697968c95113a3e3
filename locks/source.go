package locks

import "embed"

// Source has the helpers with which several families of strategies sell, for display.
//
//go:embed guard.go transaction.go
var Source embed.FS
