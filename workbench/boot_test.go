//go:build unix

package workbench

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/testprogram"
)

// What a boot could not prepare is tried again when somebody comes back, who may have
// mended it.
func TestWhatTheBootCouldNotPrepareIsTriedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		volumes, sudo string
		code          int
	}{
		"mended":             {"#!/bin/sh\n[ \"$DLWB_PATIENCE\" = 5 ] && rm -f \"$DLWB_DIR/boot.failed\"\n", `shift; exec "$@"`, 0},
		"not mended":         {"#!/bin/sh\necho again: the disk is not there >\"$DLWB_DIR/boot.failed\"\n", `shift; exec "$@"`, notPrepared},
		"nobody may look":    {"#!/bin/sh\nrm -f \"$DLWB_DIR/boot.failed\"\n", "exit 1", notPrepared},
		"no volumes at all":  {"", "exit 1", notPrepared},
		"nothing has failed": {"#!/bin/sh\necho it was called >\"$DLWB_DIR/boot.failed\"\n", `shift; exec "$@"`, 0},
	} {
		dir, bin := t.TempDir(), t.TempDir()
		var err error
		if c.volumes != "" {
			err = testprogram.Write(filepath.Join(dir, "volumes"), []byte(c.volumes), 0o755)
		}
		if name != "nothing has failed" {
			err = errors.Join(err, os.WriteFile(filepath.Join(dir, "boot.failed"), []byte("/data: no disk\n"), 0o644))
		}
		err = errors.Join(err, testprogram.Write(filepath.Join(bin, "cloud-init"), []byte("#!/bin/sh\nexit 0\n"), 0o755),
			testprogram.Write(filepath.Join(bin, "sudo"), []byte("#!/bin/sh\n"+c.sudo+"\n"), 0o755))
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("sh", "-c", bootScript)
		cmd.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "DLWB_DIR=" + dir}
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != c.code || (c.code != 0) != strings.Contains(string(out), "disk") {
			t.Errorf("%s: it ended with %d and said %q", name, got, out)
		}
	}
}
