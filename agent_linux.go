package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/dlwb/dlwb/remote/agent"
)

// asAgent makes this program the agent where its file is named as one: a dlwb
// that was built without its agents brings itself to machines of its own kind.
func asAgent() (code int, is bool) {
	if !strings.Contains(filepath.Base(os.Args[0]), agent.Prefix) {
		return 0, false
	}
	return agent.Main(os.Args[1:]), true
}
