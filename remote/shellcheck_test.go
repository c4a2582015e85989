package remote

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// noShellcheck allows the test to be skipped where there is no shellcheck.
const noShellcheck = "DLWB_TEST_NO_SHELLCHECK"

func TestTheScriptsAreCleanForShellcheck(t *testing.T) {
	if _, err := exec.LookPath("shellcheck"); err != nil {
		if os.Getenv(noShellcheck) != "" {
			t.Skipf("there is no shellcheck here, and %s is set", noShellcheck)
		}
		t.Fatalf("this test needs shellcheck: apt-get install -y shellcheck (or set %s=1 to skip it)", noShellcheck)
	}
	files, err := filepath.Glob("*scripts/*.sh")
	if err != nil || len(files) < 6 {
		t.Fatalf("found %v (%v)", files, err)
	}
	if out, err := exec.Command("shellcheck", append([]string{"-s", "sh", "-x"}, files...)...).CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}

func TestEachScriptSaysWhatItIs(t *testing.T) {
	for name, text := range scriptTexts() {
		if !strings.HasPrefix(text, "#!/bin/sh\n# "+name) {
			t.Errorf("%s does not begin by saying what it is: %.60q", name, text)
		}
		for _, word := range []string{"eave", "call"} {
			head, _, _ := strings.Cut(text, "\n\n")
			if !strings.Contains(strings.ToLower(head), word) && name != "common" {
				t.Errorf("the first lines of %s do not tell who calls it and what it leaves", name)
			}
		}
	}
}
