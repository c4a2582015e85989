//go:build linux

package agent

import (
	"maps"
	"slices"

	"github.com/dlwb/dlwb/remote/agent/supervise"
)

// modes are what the program can be started as. Each gives its exit code.
var modes map[string]func(args []string) int

func init() {
	modes = map[string]func(args []string) int{
		"check":     check,
		"host":      askHost,
		"serve":     serve,
		"supervise": supervise.Main,
		"part":      supervise.PartMain,
		"rank":      supervise.RankMain,
		"stop":      stop,
		"peer":      peer,
		"join":      supervise.JoinMain,
		"joined":    supervise.JoinedMain,
	}
}

func modeNames() []string { return slices.Sorted(maps.Keys(modes)) }
