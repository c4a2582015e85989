//go:build unix

package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/local/options"
)

// starterCommand makes the test binary bring up a cluster and then wait to be
// killed.
const starterCommand = "__starter"

// downCommand makes it take down a cluster and print the receipt, and
// markedCommand makes it a process of a cluster that no node started.
const (
	downCommand   = "__down"
	markedCommand = "__marked"
)

// TestMain lets the test binary play the dlwb binary: nodes, the peer ssh
// client and the simulated nvidia-smi are processes of their own here too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch rest := os.Args[2:]; os.Args[1] {
		case NodeCommand:
			os.Exit(NodeMain(rest))
		case PeerSSHCommand:
			os.Exit(PeerSSHMain(rest))
		case SMICommand:
			os.Exit(SimulatedSMIMain(rest))
		case starterCommand:
			os.Exit(starterMain(rest))
		case downCommand:
			os.Exit(downMain(rest))
		case markedCommand:
			os.Exit(markedMain(rest))
		}
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // else every node takes a second to end
	goleak.VerifyTestMain(m)
}

// starterMain is dlwb up, DIR NAME COUNT.
func starterMain(args []string) int {
	count, _ := strconv.Atoi(args[2])
	if _, err := New(args[0], os.Args[0]).Up(context.Background(), cloud.Life{}, cloud.Spec{Name: args[1], Count: count}, nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("up")
	select {}
}

// downMain is dlwb down --json, DIR NAME.
func downMain(args []string) int {
	r, err := New(args[0], os.Args[0]).Down(context.Background(), cloud.Life{Name: args[1]}, nil)
	_ = json.NewEncoder(os.Stdout).Encode(r)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// markedMain carries the mark of a cluster, ID, until its input ends.
func markedMain(args []string) int {
	if err := mark(args[0]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("marked")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// provider makes a provider in a directory of its own. At the end of the test
// everything that the test left there is taken down, and it is an error when
// something is left.
func provider(t *testing.T) *Provider {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := New(t.TempDir(), exe)
	t.Cleanup(func() {
		entries, err := os.ReadDir(p.dir)
		if err != nil {
			t.Error(err)
		}
		for _, e := range entries {
			if r, err := p.Down(context.Background(), cloud.Life{Name: e.Name()}, nil); err != nil || !r.Proven() {
				t.Errorf("down %s: %v; %+v", e.Name(), err, r)
			}
		}
	})
	return p
}

// up brings up a cluster named "c".
func up(t *testing.T, p *Provider, count, gpus int) cloud.Cluster {
	t.Helper()
	c, err := p.Up(t.Context(), cloud.Life{}, cloud.Spec{Name: "c", Count: count, Own: &options.Machines{SimulateGPUs: gpus}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// down takes it down and wants proof.
func down(t *testing.T, p *Provider) cloud.Receipt {
	t.Helper()
	r, err := p.Down(t.Context(), cloud.Life{Name: "c"}, nil)
	if err != nil {
		t.Fatalf("down: %v\n%+v", err, r)
	}
	if !r.Proven() || r.ProcessesLeft != 0 || r.FilesLeft != 0 {
		t.Fatalf("the receipt proves nothing: %+v", r)
	}
	if _, err := os.Lstat(p.dir + "/c"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the directory of the cluster is still there: %v", err)
	}
	return r
}

// login connects to node i as its owner does, with its host key checked.
func login(t *testing.T, c cloud.Cluster, i int) *ssh.Client {
	t.Helper()
	key, err := readKey(c.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	client, err := loginWith(c, i, c.Nodes[i].User, ssh.PublicKeys(key))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func loginWith(c cloud.Cluster, i int, user string, auth ssh.AuthMethod) (*ssh.Client, error) {
	host, _, _, _, err := ssh.ParseAuthorizedKey([]byte(c.Nodes[i].HostKey))
	if err != nil {
		return nil, err
	}
	return ssh.Dial("tcp", c.Nodes[i].Addr, &ssh.ClientConfig{
		User: user, Auth: []ssh.AuthMethod{auth}, HostKeyCallback: ssh.FixedHostKey(host), Timeout: 10 * time.Second,
	})
}

// newSession opens a session.
func newSession(t *testing.T, client *ssh.Client) *ssh.Session {
	t.Helper()
	s, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// sh runs a command that must succeed and returns its output, trimmed.
func sh(t *testing.T, client *ssh.Client, line string) string {
	t.Helper()
	s := newSession(t, client)
	var stdout, stderr bytes.Buffer
	s.Stdout, s.Stderr = &stdout, &stderr
	if err := s.Run(line); err != nil {
		t.Fatalf("%s: %v\n%s%s", line, err, stdout.String(), stderr.String())
	}
	return strings.TrimSpace(stdout.String())
}

// exitCode runs a command and returns how it ended.
func exitCode(t *testing.T, client *ssh.Client, line string) int {
	t.Helper()
	var exit *ssh.ExitError
	err := newSession(t, client).Run(line)
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitStatus()
	}
	t.Fatalf("%s: %v", line, err)
	return -1
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after 60 s still not: %s", what)
		}
	}
}

// running reports whether a process runs.
func running(pid int) bool {
	p, err := lookup(pid)
	return err == nil && !p.dead
}

// kill9 kills a process and waits until it is dead.
func kill9(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, fmt.Sprintf("process %d is dead", pid), func() bool { return !running(pid) })
}

// pidOf is the process of node i of cluster c.
func pidOf(t *testing.T, p *Provider, i int) int {
	t.Helper()
	s, err := readServing(nodeDir(p.dir+"/c", i))
	if err != nil {
		t.Fatal(err)
	}
	return s.PID
}

// readPID waits until a file holds the number of a process.
func readPID(t *testing.T, path string) int {
	t.Helper()
	pid := 0
	eventually(t, path+" holds a pid", func() bool {
		b, _ := os.ReadFile(path)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(b)))
		return pid > 0
	})
	return pid
}
