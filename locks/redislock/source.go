package redislock

import "embed"

// Source has the files of this folder, for display.
//
//go:embed *.go *.lua
var Source embed.FS
