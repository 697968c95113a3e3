package local

import "embed"

// Source has the code of this package, for display.
//
//go:embed *.go
var Source embed.FS
