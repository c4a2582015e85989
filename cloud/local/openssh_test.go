//go:build unix

package local

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
)

// openSSH prepares the options of the real ssh client for node 0.
func openSSH(t *testing.T, c cloud.Cluster) []string {
	t.Helper()
	known := filepath.Join(t.TempDir(), "known_hosts")
	write(t, known, fmt.Sprintf("[127.0.0.1]:%d %s\n", c.Nodes[0].PeerPort, c.Nodes[0].HostKey))
	return []string{
		"-F", "/dev/null", "-i", c.KeyFile, "-o", "Port=" + itoa(c.Nodes[0].PeerPort), "-o", "User=" + c.Nodes[0].User,
		"-o", "UserKnownHostsFile=" + known, "-o", "StrictHostKeyChecking=yes", "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes",
		"-o", "ServerAliveInterval=1",
	}
}

// clientRun runs one of the OpenSSH programs.
func clientRun(t *testing.T, input, program string, args ...string) (out string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin = strings.NewReader(input)
	b, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatalf("%s: %v", program, err)
	}
	return string(b), cmd.ProcessState.ExitCode()
}

func TestTheOpenSSHClientFindsAnOrdinaryHost(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"ssh", "sftp", "scp"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("there is no %s here", program)
		}
	}
	p := provider(t)
	c := up(t, p, 1, 0)
	options := openSSH(t, c)
	home := filepath.Join(p.dir, "c", "node0", "home")
	ssh := func(input string, args ...string) (string, int) {
		return clientRun(t, input, "ssh", slices.Concat(args, options, []string{"127.0.0.1"})...)
	}
	run := func(input, line string, args ...string) (string, int) {
		// Of two settings of one option ssh takes the first.
		return clientRun(t, input, "ssh", slices.Concat(args, options, []string{"127.0.0.1", line})...)
	}
	if out, code := run("in", "cat; echo; pwd; exit 4"); out != "in\n"+home+"\n" || code != 4 {
		t.Errorf("%q %d", out, code)
	}
	if out, code := run("", "kill -9 $$"); code != 255 {
		t.Errorf("a killed command: %q %d", out, code)
	}
	if out, code := run("", `test -t 1 && echo "$TERM" terminal`, "-tt"); code != 0 || !strings.Contains(out, "terminal") {
		t.Errorf("-tt: %q %d", out, code)
	}
	if out, code := ssh("echo typed; exit 6\n"); code != 6 || !strings.Contains(out, "typed") {
		t.Errorf("a shell without a terminal: %q %d", out, code)
	}
	if out, code := run("", "sleep 1000 >/dev/null 2>&1 </dev/null & echo started"); out != "started\n" || code != 0 {
		t.Errorf("a background process: %q %d", out, code)
	}
	local := filepath.Join(t.TempDir(), "local")
	write(t, local, strings.Repeat("x", 100000))
	if out, code := clientRun(t, "put "+local+" there\nrename there here\nls -l here\n", "sftp", slices.Concat(options, []string{"-b", "-", "127.0.0.1"})...); code != 0 {
		t.Errorf("sftp: %s", out)
	}
	if out, code := clientRun(t, "", "scp", slices.Concat(options, []string{"127.0.0.1:here", local + "2"})...); code != 0 {
		t.Errorf("scp: %s", out)
	}
	if b, err := os.ReadFile(local + "2"); err != nil || !bytes.Equal(b, bytes.Repeat([]byte("x"), 100000)) {
		t.Errorf("scp brought %d bytes back: %v", len(b), err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if conn, err := l.Accept(); err == nil {
			fmt.Fprint(conn, "through")
			conn.Close()
		}
	}()
	if out, code := ssh("", "-W", l.Addr().String()); out != "through" || code != 0 {
		t.Errorf("-W: %q %d", out, code)
	}
	if out, code := run("", "true", "-o", "UserKnownHostsFile=/dev/null"); code != 255 || !strings.Contains(out, "verification failed") {
		t.Errorf("an unknown host key: %q %d", out, code)
	}
	if out, code := run("", "true", "-R", "0:127.0.0.1:1", "-o", "ExitOnForwardFailure=yes"); code != 255 {
		t.Errorf("-R was granted: %q %d", out, code)
	}
	down(t, p)
}
