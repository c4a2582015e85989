// Command dlwb is a terminal workbench for deep-learning experiments.
package main

import (
	"os"

	"github.com/dlwb/dlwb/cli"
	"github.com/dlwb/dlwb/internal/agentbin"
)

func main() {
	if code, is := asAgent(); is {
		os.Exit(code)
	}
	agentbin.BringSelf()
	os.Exit(cli.Main(os.Args[1:]))
}
