// Package tuitest holds the tests of the whole program in a real terminal.
package tuitest

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cli"
)

// asDlwb makes the test binary behave as dlwb itself: as the program that the
// tests start, and as the nodes of their clusters.
const asDlwb = "DLWB_TEST_AS_DLWB"

func TestMain(m *testing.M) {
	part := len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "__")
	if part || os.Getenv(asDlwb) != "" {
		os.Exit(cli.Main(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// dlwb is a command that runs the program.
func dlwb(args ...string) *exec.Cmd { return exec.Command(os.Args[0], args...) }

// dlwbEnv is what the program needs to live in a directory.
func dlwbEnv(dir string) []string {
	return []string{asDlwb + "=1", "HOME=" + dir, "DLWB_HOME=" + dir + "/state", "DLWB_KEEPER=off", "XDG_STATE_HOME="}
}
