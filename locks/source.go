package locks

import "embed"

// Source has the code of sales that several families share, for display.
//
//go:embed guard.go transaction.go
var Source embed.FS
