//go:build linux

// Command dlwb-agent is the program that dlwb puts on a node.
package main

import (
	"os"

	"github.com/dlwb/dlwb/remote/agent"
)

func main() { os.Exit(agent.Main(os.Args[1:])) }
