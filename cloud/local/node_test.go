//go:build unix

package local

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/local/options"
)

func TestACommandRunsInTheNodesHomeWithItsOwnEnvironment(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "not for nodes")
	t.Setenv("AWS_PROFILE", "not for nodes")
	t.Setenv("GITHUB_TOKEN", "not for nodes")
	t.Setenv("PIP_SECRET", "not for nodes")
	t.Setenv("LC_TIME", "C")
	p := provider(t)
	c := up(t, p, 2, 0)
	client := login(t, c, 1)
	home := filepath.Join(p.dir, "c", "node1", "home")
	if got := sh(t, client, `pwd; echo "$HOME"; cd ~; pwd; echo "$DLWB_NODE $USER $DLWB_SSH $LC_TIME"; test -d "$TMPDIR" && test "$LANG" && echo ok`); got != strings.Join([]string{
		home, home, home, "1 " + c.Nodes[1].User + " dlwb-peer-ssh C", "ok"}, "\n") {
		t.Errorf("got\n%s", got)
	}
	for _, env := range []string{sh(t, client, "env"), sh(t, client, `tr '\0' '\n' </proc/$PPID/environ 2>/dev/null || true`)} {
		if strings.Contains(env, "not for nodes") {
			t.Errorf("credentials of the caller reached the node:\n%s", env)
		}
	}
	if got := sh(t, client, "env | sed 's/=.*//' | sort | uniq -d"); got != "" {
		t.Errorf("set twice: %s", got)
	}
}

func TestExitCodesOutputAndInputArriveAsTheyAre(t *testing.T) {
	t.Parallel()
	client := login(t, up(t, provider(t), 1, 0), 0)
	for _, want := range []int{0, 1, 3, 127, 255} {
		if got := exitCode(t, client, fmt.Sprintf("exit %d", want)); got != want {
			t.Errorf("exit %d became %d", want, got)
		}
	}
	if got := exitCode(t, client, "no-such-program 2>/dev/null"); got != 127 {
		t.Errorf("a missing program: exit %d", got)
	}
	s := newSession(t, client)
	var stdout, stderr bytes.Buffer
	s.Stdout, s.Stderr = &stdout, &stderr
	input := make([]byte, 3<<20)
	if _, err := rand.Read(input); err != nil {
		t.Fatal(err)
	}
	s.Stdin = bytes.NewReader(input)
	if err := s.Run("cat; echo err >&2"); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(stdout.Bytes(), input) || stderr.String() != "err\n" {
		t.Errorf("3 MB through cat: %d bytes came back, stderr %q", stdout.Len(), stderr.String())
	}
	// A command that does not read its input must not hang on it.
	s = newSession(t, client)
	s.Stdin = bytes.NewReader(input)
	if err := s.Run("true"); err != nil && !errors.Is(err, io.EOF) { // EOF: of the client's copying
		t.Error(err)
	}
}

func TestSignalsAreDeliveredAndReported(t *testing.T) {
	t.Parallel()
	client := login(t, up(t, provider(t), 1, 0), 0)
	var exit *ssh.ExitError
	if err := newSession(t, client).Run("kill -KILL $$"); !errors.As(err, &exit) || exit.Signal() != "KILL" {
		t.Errorf("a killed command: %v", err)
	}
	s := newSession(t, client)
	out, err := s.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(`trap 'echo got INT; exit 7' INT; echo ready; while :; do sleep 0.01; done`); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 6)
	if _, err := io.ReadFull(out, line); err != nil {
		t.Fatal(err)
	}
	if err := s.Signal(ssh.SIGINT); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(out)
	if err := s.Wait(); !errors.As(err, &exit) || exit.ExitStatus() != 7 || string(rest) != "got INT\n" {
		t.Errorf("after INT: %q, %v", rest, err)
	}
}

func TestAShellHasATerminalThatFollowsTheWindow(t *testing.T) {
	t.Parallel()
	client := login(t, up(t, provider(t), 1, 0), 0)
	s := newSession(t, client)
	in, err := s.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var screen lockedBuffer
	s.Stdout = &screen
	if err := s.RequestPty("xterm-256color", 40, 100, ssh.TerminalModes{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Shell(); err != nil {
		t.Fatal(err)
	}
	expect := func(typed, want string) {
		t.Helper()
		fmt.Fprintln(in, typed)
		eventually(t, fmt.Sprintf("%q on the screen after %q", want, typed), func() bool { return strings.Contains(screen.String(), want) })
	}
	expect(`echo "size: $(stty size) $TERM"`, "size: 40 100 xterm-256color")
	expect(`test -t 0 && test -t 1 && test "$(tty)" = "$SSH_TTY" && echo "a ""terminal"`, "a terminal")
	if err := s.WindowChange(24, 80); err != nil {
		t.Fatal(err)
	}
	// What is typed may overtake the change: they are not of one stream here.
	expect(`until test "$(stty size)" = "24 80"; do sleep 0.05; done; echo "now: $(stty size)"`, "now: 24 80")
	fmt.Fprintln(in, "exit 5")
	var exit *ssh.ExitError
	if err := s.Wait(); !errors.As(err, &exit) || exit.ExitStatus() != 5 {
		t.Errorf("the shell ended with %v", err)
	}
}

func TestACutConnectionEndsInputAndTerminalButNotTheBackground(t *testing.T) {
	t.Parallel()
	p := provider(t)
	c := up(t, p, 1, 0)
	home := filepath.Join(p.dir, "c", "node0", "home")
	client := login(t, c, 0)
	s := newSession(t, client)
	if _, err := s.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(`echo $$ >reader; cat >/dev/null; echo end >input-ended`); err != nil {
		t.Fatal(err)
	}
	term := newSession(t, client)
	if _, err := term.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := term.RequestPty("xterm", 24, 80, nil); err != nil {
		t.Fatal(err)
	}
	if err := term.Start(`trap 'echo hup >hung-up; exit' HUP; echo $$ >terminal; while :; do sleep 0.01; done`); err != nil {
		t.Fatal(err)
	}
	sh(t, client, `setsid nohup sh -c 'echo $$ >background; sleep 1000' >/dev/null 2>&1 </dev/null &`)
	background := readPID(t, filepath.Join(home, "background"))
	reader := readPID(t, filepath.Join(home, "reader"))
	readPID(t, filepath.Join(home, "terminal"))
	client.Close()
	for _, name := range []string{"input-ended", "hung-up"} {
		eventually(t, name, func() bool { _, err := os.Stat(filepath.Join(home, name)); return err == nil })
	}
	eventually(t, "the reader ended", func() bool { return !running(reader) })
	if !running(background) {
		t.Error("the background process died with the connection")
	}
	down(t, p)
	if running(background) {
		t.Error("the background process outlived the node")
	}
}

func TestSFTPStartsAtHome(t *testing.T) {
	t.Parallel()
	p := provider(t)
	client := login(t, up(t, p, 1, 0), 0)
	files, err := sftp.NewClient(client)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	home := filepath.Join(p.dir, "c", "node0", "home")
	if wd, err := files.Getwd(); err != nil || wd != home {
		t.Errorf("sftp starts in %q (%v)", wd, err)
	}
	if err := files.MkdirAll("a/b"); err != nil {
		t.Fatal(err)
	}
	content := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	f, err := files.Create("a/b/new")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(content); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := files.PosixRename("a/b/new", "a/file"); err != nil {
		t.Fatal(err)
	}
	if err := files.Chmod("a/file", 0o751); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(home, "a", "file")); err != nil || !bytes.Equal(got, content) {
		t.Errorf("1 MB by sftp: %d bytes are there (%v)", len(got), err)
	}
	if fi, err := files.Stat("a/file"); err != nil || fi.Mode().Perm() != 0o751 {
		t.Errorf("mode: %v %v", fi, err)
	}
}

func TestAPortOfTheNodeIsReachedAndNothingElseIsOffered(t *testing.T) {
	t.Parallel()
	client := login(t, up(t, provider(t), 1, 0), 0)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	served := make(chan string, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		asked, _ := io.ReadAll(conn) // only ends when the close of one direction arrives
		served <- string(asked)
		io.WriteString(conn, "answer")
	}()
	conn, err := client.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "question")
	if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(conn)
	if q := <-served; q != "question" || string(answer) != "answer" {
		t.Errorf("asked %q, answered %q", q, answer)
	}
	l.Close()
	if _, err := client.Dial("tcp", l.Addr().String()); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("a closed port: %v", err)
	}
	if _, err := client.Listen("tcp", "127.0.0.1:0"); err == nil {
		t.Error("the node listens for its clients")
	}
	if _, _, err := client.OpenChannel("x11", nil); err == nil {
		t.Error("the node opens x11 channels")
	}
	if ok, _, err := client.SendRequest("keepalive@openssh.com", true, nil); err != nil {
		t.Errorf("a keepalive: %v %v", ok, err)
	}
}

func TestNoMoreThanTenSessionsOnOneConnection(t *testing.T) {
	t.Parallel()
	client := login(t, up(t, provider(t), 1, 0), 0)
	for range maxSessions {
		s := newSession(t, client)
		if _, err := s.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		if err := s.Start("cat"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.NewSession(); err == nil {
		t.Error("an eleventh session was opened; sshd refuses it")
	}
}

func TestOnlyTheClustersKeyGetsIn(t *testing.T) {
	t.Parallel()
	c := up(t, provider(t), 2, 0)
	key, err := readKey(c.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	if fi, err := os.Stat(c.KeyFile); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("the key's mode: %v %v", fi, err)
	}
	if fi, err := os.Stat(filepath.Dir(c.KeyFile)); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("the key's directory's mode: %v %v", fi, err)
	}
	if c.Nodes[0].HostKey == c.Nodes[1].HostKey {
		t.Error("two nodes share a host key")
	}
	other, _ := newKey(t)
	for what, try := range map[string]func() (*ssh.Client, error){
		"another key":  func() (*ssh.Client, error) { return loginWith(c, 0, c.Nodes[0].User, ssh.PublicKeys(other)) },
		"another user": func() (*ssh.Client, error) { return loginWith(c, 0, "somebody", ssh.PublicKeys(key)) },
		"a password":   func() (*ssh.Client, error) { return loginWith(c, 0, c.Nodes[0].User, ssh.Password("")) },
		"the host key of another node": func() (*ssh.Client, error) {
			swapped := c
			swapped.Nodes = append(swapped.Nodes[:0:0], c.Nodes...)
			swapped.Nodes[0].HostKey = c.Nodes[1].HostKey
			return loginWith(swapped, 0, c.Nodes[0].User, ssh.PublicKeys(key))
		},
	} {
		if client, err := try(); err == nil {
			client.Close()
			t.Errorf("%s opened the node", what)
		}
	}
}

func newKey(t *testing.T) (ssh.Signer, ssh.PublicKey) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer, signer.PublicKey()
}

func TestAuthorizedKeysBindAKeyToItsCommand(t *testing.T) {
	t.Parallel()
	p := provider(t)
	c := up(t, p, 1, 0)
	signer, public := newKey(t)
	file := filepath.Join(p.dir, "c", "node0", "home", ".ssh", "authorized_keys")
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	set := func(options string, mode os.FileMode) {
		t.Helper()
		os.Remove(file)
		if err := os.WriteFile(file, []byte("# a comment\n\nnot a key\n"+options+" "+authorizedForm(public)+" peer\n"), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
	}
	try := func() (*ssh.Client, error) { return loginWith(c, 0, c.Nodes[0].User, ssh.PublicKeys(signer)) }

	set(`restrict,command="echo \"bound: $SSH_ORIGINAL_COMMAND\""`, 0o600)
	client, err := try()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if got := sh(t, client, "rm -rf something; id"); got != "bound: rm -rf something; id" {
		t.Errorf("the forced command said %q", got)
	}
	if err := newSession(t, client).RequestPty("xterm", 24, 80, nil); err == nil {
		t.Error("a restricted key got a terminal")
	}
	if _, err := client.Dial("tcp", c.Nodes[0].Addr); err == nil {
		t.Error("a restricted key got a forward")
	}
	s := newSession(t, client)
	var out bytes.Buffer
	s.Stdout = &out
	if err := s.RequestSubsystem("sftp"); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(); err == nil && !strings.HasPrefix(out.String(), "bound: ") {
		t.Errorf("a bound key got sftp: %q", out.String())
	}

	for _, refused := range []struct {
		options string
		mode    os.FileMode
	}{
		{`from="10.0.0.0/8"`, 0o600}, {`from="127.0.0.0/8,!127.0.0.1"`, 0o600}, {`permitopen="a:1"`, 0o600},
		{`expiry-time="20200101"`, 0o600}, {`cert-authority`, 0o600}, {``, 0o666},
	} {
		set(refused.options, refused.mode)
		if client, err := try(); err == nil {
			client.Close()
			t.Errorf("authorized_keys (%o) with %q opened the node", refused.mode, refused.options)
		}
	}
	set(`from="192.0.2.1,127.0.0.*",no-pty`, 0o644)
	client2, err := try()
	if err != nil {
		t.Fatal(err)
	}
	defer client2.Close()
	if got := sh(t, client2, "echo free"); got != "free" {
		t.Errorf("an unbound key: %q", got)
	}
}

// lockedBuffer may be read while a session writes to it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestPeersReachEachOtherWithoutAnSSHClient(t *testing.T) {
	t.Parallel()
	p := provider(t)
	c := up(t, p, 2, 0)
	signer, _ := makeKeyPair(t, p, 0)
	authorize(t, p, 1, `restrict,command="read x; echo \"$DLWB_NODE $x $SSH_ORIGINAL_COMMAND\"; exit 9"`, signer)
	known := func(key string) {
		line := fmt.Sprintf("[%s]:%d %s\n", c.Nodes[1].PeerHost, c.Nodes[1].PeerPort, key)
		if err := os.WriteFile(filepath.Join(p.dir, "c", "node0", "home", "known"), []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	known(c.Nodes[1].HostKey)
	client := login(t, c, 0)
	line := fmt.Sprintf(`echo input | $DLWB_SSH -i peer -p %d -o UserKnownHostsFile=known -o StrictHostKeyChecking=yes -o BatchMode=yes -o ConnectTimeout=5 %s@%s stop run "two words" 2>&1; echo "code $?"`,
		c.Nodes[1].PeerPort, c.Nodes[1].User, c.Nodes[1].PeerHost)
	if got := sh(t, client, line); got != "1 input stop run two words\ncode 9" {
		t.Errorf("the peer answered %q", got)
	}
	known(c.Nodes[0].HostKey)
	if got := sh(t, client, line); !strings.Contains(got, "key mismatch") || !strings.HasSuffix(got, "code 255") {
		t.Errorf("a peer with another host key: %q", got)
	}
	gone := strings.Replace(line, fmt.Sprintf("-p %d", c.Nodes[1].PeerPort), "-p 1", 1)
	if got := sh(t, client, gone); !strings.HasSuffix(got, "code 255") {
		t.Errorf("a peer that is not there: %q", got)
	}
}

// makeKeyPair puts a private key named peer into a node's home.
func makeKeyPair(t *testing.T, p *Provider, i int) (ssh.Signer, string) {
	t.Helper()
	path := filepath.Join(nodeDir(p.dir+"/c", i), homeDir, "peer")
	signer, err := makeKey(path, "peer")
	if err != nil {
		t.Fatal(err)
	}
	return signer, path
}

// authorize lets a key into a node, with options.
func authorize(t *testing.T, p *Provider, i int, options string, key ssh.Signer) {
	t.Helper()
	dir := filepath.Join(nodeDir(p.dir+"/c", i), homeDir, ".ssh")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "authorized_keys"), []byte(options+" "+authorizedForm(key.PublicKey())+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// mustKey makes a key for a test or a fuzzer.
func mustKey(t testing.TB) ssh.Signer {
	t.Helper()
	signer, err := makeKey(filepath.Join(t.TempDir(), "key"), "test")
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// As with sshd, a connection that stands is not cut by a new host key, and the
// next one is shown the new key.
func TestAHostKeyCanBeReplacedUnderARunningNode(t *testing.T) {
	p := provider(t)
	c := up(t, p, 1, 0)
	before := login(t, c, 0)
	path := filepath.Join(nodeDir(p.dir+"/c", 0), hostKeyFile)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := makeKey(path, "next"); err != nil {
		t.Fatal(err)
	}
	key, err := readKey(c.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	if client, err := loginWith(c, 0, c.Nodes[0].User, ssh.PublicKeys(key)); err == nil {
		client.Close()
		t.Fatal("the old host key is still shown")
	}
	if c, err = p.Load("c"); err != nil {
		t.Fatal(err)
	}
	if got := sh(t, login(t, c, 0), "echo new") + sh(t, before, "echo old"); got != "newold" {
		t.Fatalf("said %q", got)
	}
	down(t, p)
}

func TestTheUserOfASpecIsWhoLogsIn(t *testing.T) {
	p := provider(t)
	c, err := p.Up(t.Context(), cloud.Life{}, cloud.Spec{Name: "c", Count: 1, Own: &options.Machines{User: "ubuntu"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Nodes[0].User + " " + sh(t, login(t, c, 0), "echo $USER"); got != "ubuntu ubuntu" {
		t.Fatalf("the users are %q", got)
	}
	key, err := readKey(c.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	if client, err := loginWith(c, 0, userName(), ssh.PublicKeys(key)); err == nil {
		client.Close()
		t.Fatal("another user was let in")
	}
}
