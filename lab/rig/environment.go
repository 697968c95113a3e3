package rig

import (
	"os"
	"slices"
	"strings"
)

// inherited are the variables that a server gets from this program, besides LC_*. All
// others stay away: a variable of the user's shell configures `oversell serve`, etcd and
// ZooKeeper as a flag does.
func inherited() []string {
	return []string{
		"PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ",
		"LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", // of servers that were unpacked, not installed
		"JAVA_HOME",
		"GOGC", "GODEBUG", "GOTRACEBACK", "GORACE", "GOCOVERDIR", // of a replica's Go
	}
}

// environment is that of every server, with more variables.
func environment(more ...string) []string {
	var env []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if slices.Contains(inherited(), name) || strings.HasPrefix(name, "LC_") {
			env = append(env, entry)
		}
	}
	return append(env, more...)
}
