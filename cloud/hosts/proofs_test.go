//go:build unix

package hosts

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/dlwb/dlwb/internal/sshdtest"
)

// A certificate may lie anywhere, as what Vault and step-ca write, and be for a key that
// only the agent holds.
func TestCertificatesOfUsersLogIn(t *testing.T) {
	w := newWorld(t)
	authority := sshdtest.MakeKey(t, w.path("ca"))
	w.write("ca.pub", authority+"\n")
	s := w.start("gpu1", sshdtest.Config("TrustedUserCAKeys "+w.path("ca.pub")))
	stranger := w.path("stranger") // the host knows no such key
	sshdtest.MakeKey(t, stranger)
	sign := func(valid, to string) {
		t.Helper()
		w.write(to+".pub", tool(t, "", "ssh-keygen", "-y", "-f", stranger))
		keygen(t, "-q", "-s", w.path("ca"), "-I", "ada", "-n", s.User, "-V", valid, w.path(to+".pub"))
	}
	sign("-1h:+1h", "elsewhere")
	sign("-2h:-1h", "over")
	usual := mustRead(t, w.path("config"))
	held := exec.Command("ssh-agent", "-D", "-a", w.path("agent"))
	if err := held.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = held.Process.Kill(); _ = held.Wait() })
	for { // until it answers, or the test's time is over
		if c, err := net.Dial("unix", w.path("agent")); err == nil {
			_ = c.Close()
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, c := range []struct{ name, key, cert, want string }{
		{"no certificate", stranger, "", "NO gpu1: it does not let "},
		{"one that lies elsewhere", stranger, "elsewhere-cert.pub", "ok gpu1: reachable in "},
		{"one for a key of the agent", w.path("agents-key"), "elsewhere-cert.pub", "ok gpu1: reachable in "},
		{"one that has expired", stranger, "over-cert.pub", "over-cert.pub (since "},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := strings.ReplaceAll(usual, s.KeyFile, c.key)
			if c.cert != "" {
				config += "Host *\n CertificateFile " + w.path(c.cert) + "\n"
			}
			t.Setenv("SSH_AUTH_SOCK", "")
			if c.key != stranger {
				t.Setenv("SSH_AUTH_SOCK", w.path("agent"))
				tool(t, "", "ssh-add", "-q", stranger)
				config = strings.ReplaceAll(config, "IdentitiesOnly yes", "IdentitiesOnly no")
			}
			w.write("config", config)
			want(t, w.check("gpu1"), c.want)
		})
	}
}

// security is an agent that holds a key as a FIDO device does: what it signs has a
// counter, and says that the device was touched.
type security struct {
	agent.ExtendedAgent
	private ed25519.PrivateKey
	key     ssh.PublicKey
}

func newSecurity(t *testing.T) *security {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.ParsePublicKey(ssh.Marshal(struct {
		Type        string
		Key         []byte
		Application string
	}{ssh.KeyAlgoSKED25519, public, "ssh:"}))
	if err != nil {
		t.Fatal(err)
	}
	return &security{agent.NewKeyring().(agent.ExtendedAgent), private, key}
}

func (s *security) List() ([]*agent.Key, error) {
	return []*agent.Key{{Format: s.key.Type(), Blob: s.key.Marshal(), Comment: "device"}}, nil
}

func (s *security) Sign(key ssh.PublicKey, data []byte) (*ssh.Signature, error) {
	return s.SignWithFlags(key, data, 0)
}

func (s *security) SignWithFlags(key ssh.PublicKey, data []byte, _ agent.SignatureFlags) (*ssh.Signature, error) {
	if !bytes.Equal(key.Marshal(), s.key.Marshal()) {
		return nil, errors.New("not this one")
	}
	app, message := sha256.Sum256([]byte("ssh:")), sha256.Sum256(data)
	const touched, counter = 1, 7
	tail := []byte{touched, 0, 0, 0, counter}
	signed := append(append(append([]byte{}, app[:]...), tail...), message[:]...)
	return &ssh.Signature{Format: s.key.Type(), Blob: ed25519.Sign(s.private, signed), Rest: tail}, nil
}

// OpenSSH's own sshd checks the signature.
func TestAKeyOnASecurityKeyLogsInThroughTheAgent(t *testing.T) {
	w := newWorld(t)
	s := w.start("gpu1")
	device := newSecurity(t)
	s.Authorize(strings.TrimSpace(string(ssh.MarshalAuthorizedKey(device.key))))
	l, err := net.Listen("unix", w.path("agent"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _ = agent.ServeAgent(device, c); _ = c.Close() }()
		}
	}()
	config := strings.ReplaceAll(mustRead(t, w.path("config")), s.KeyFile, w.path("none"))
	config = strings.ReplaceAll(config, "IdentitiesOnly yes", "IdentitiesOnly no")
	w.write("config", fmt.Sprintf("Host *\n IdentityAgent %s\n%s", w.path("agent"), config))
	t.Setenv("SSH_AUTH_SOCK", "")
	want(t, w.check("gpu1"), "ok gpu1: reachable in ")
}
