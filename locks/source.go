package locks

import "embed"

// Source has the source files of the helpers with which several families of strategies sell. The
// web page displays these files.
//
//go:embed guard.go transaction.go
var Source embed.FS
