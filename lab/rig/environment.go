package rig

import (
	"os"
	"slices"
	"strings"
)

// environment returns the variables of a server: more, LC_*, and the inherited ones. All others
// are left out, because they can configure `oversell serve`, etcd and ZooKeeper as a flag does.
func environment(more ...string) []string {
	inherited := []string{
		"PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ",
		"LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", // of servers that were unpacked, not installed
		"JAVA_HOME",
		"GOGC", "GODEBUG", "GOTRACEBACK", "GORACE", "GOCOVERDIR", // of a replica's Go
	}
	var env []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if slices.Contains(inherited, name) || strings.HasPrefix(name, "LC_") {
			env = append(env, entry)
		}
	}
	return append(env, more...)
}
