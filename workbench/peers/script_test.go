package peers

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/dlwb/dlwb/internal/testprogram"
)

// A host whose sshd refuses the key is reached; one to which no connection is made is not,
// whatever words the kernel has for that.
func TestAHostIsReachedWhoseSSHDRefusesTheLogin(t *testing.T) {
	for name, c := range map[string]struct{ ssh, want string }{
		"let in":            {"exit 0", "reached 1 gpu2 22 \n"},
		"refused by sshd":   {"echo 'ada@gpu2: Permission denied (publickey,keyboard-interactive).' >&2; exit 255", "closed 1 gpu2 22 \n"},
		"denied on the way": {"echo 'ssh: connect to host gpu2 port 22: Permission denied' >&2; exit 255", ""},
		"another host":      {"echo 'Host key verification failed.' >&2; exit 255", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for program, text := range map[string]string{"ssh": c.ssh, "getent": "exit 2"} {
				if err := testprogram.Write(filepath.Join(dir, program), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			try := exec.Command("sh", "-c", tryScript+"try 1 gpu2 22 ada 'ssh-ed25519 AAAA'\n")
			try.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
			out, err := try.CombinedOutput()
			if string(out) != c.want {
				t.Errorf("%q, want %q (%v)", out, c.want, err)
			}
		})
	}
}
