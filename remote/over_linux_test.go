package remote

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/podrig"
	"github.com/dlwb/dlwb/internal/slurmrig"
	"github.com/dlwb/dlwb/remote/transport"
)

// The same life over each way to a machine that is not ssh.

func TestALifeOverAProcessOfThisMachine(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	lifeOver(t, transport.Local())
}

func TestALifeInAContainer(t *testing.T) {
	name, _ := podrig.Start(t)
	lifeOver(t, transport.Podman(name))
}

func TestALifeOnANodeOfASlurmJob(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	lifeOver(t, transport.Slurm(slurmrig.Start(t, 2), "n2"))
}

// lifeOver goes through what a cluster's life asks of a node, up apart.
func lifeOver(t *testing.T, by transport.Opener) {
	n := OpenOver("node0", by)
	t.Cleanup(func() { _ = n.Close() })
	servesWell(t, n)
}

func loginContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// servesWell holds that commands run as POSIX sh, with their input, and that
// exactly what they say comes back.
func servesWell(t *testing.T, n *Node) {
	t.Helper()
	res, err := n.Exec(loginContext(t), Cmd{Line: `a=1; read b; printf '%s\n' "$a$b" '$x\'; echo no >&2; exit 7`, Stdin: strings.NewReader("2\n")})
	if err != nil || res.ExitCode != 7 || string(res.Stdout) != "12\n$x\\\n" || string(res.Stderr) != "no\n" {
		t.Errorf("exit code %d, stdout %.200q, stderr %.200q: %v", res.ExitCode, res.Stdout, res.Stderr, err)
	}
}
