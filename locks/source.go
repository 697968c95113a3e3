package locks

import "embed"

// Source has the code of a sale that several families of strategies share, for the web page.
//
//go:embed guard.go transaction.go
var Source embed.FS
