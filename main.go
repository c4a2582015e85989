// Command dlwb is a terminal workbench for deep-learning experiments.
package main

import (
	"os"

	"github.com/dlwb/dlwb/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:])) }
