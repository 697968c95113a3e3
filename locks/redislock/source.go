package redislock

import "embed"

// Source is this folder, for those who want to read the code that runs.
//
//go:embed *.go *.lua
var Source embed.FS
