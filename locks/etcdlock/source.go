package etcdlock

import "embed"

// Source is this folder, for those who want to read the code that runs.
//
//go:embed *.go
var Source embed.FS
