// Command oversell is a laboratory for distributed locks.
package main

import (
	"os"

	"oversell/cli"
)

func main() { os.Exit(cli.Main(os.Args[0], os.Args[1:])) }
