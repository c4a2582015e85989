package ec2story

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"net"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/dlwb/dlwb/internal/fakeaws"
)

// middle is a man in the middle who plays the machine with a key of his own,
// lets everybody in, and remembers what he was told.
type middle struct {
	config *ssh.ServerConfig
	met    atomic.Int64 // connections

	mu   sync.Mutex
	told []string // whatever came after the key exchange
}

func newMiddle(t *testing.T, key ssh.Signer) *middle {
	t.Helper()
	if key == nil {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if key, err = ssh.NewSignerFromKey(private); err != nil {
			t.Fatal(err)
		}
	}
	m := &middle{}
	m.config = &ssh.ServerConfig{NoClientAuth: true,
		NoClientAuthCallback: func(c ssh.ConnMetadata) (*ssh.Permissions, error) {
			m.hear("the user name " + c.User())
			return nil, nil
		},
		PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) {
			m.hear("a public key")
			return nil, nil
		}}
	m.config.AddHostKey(key)
	return m
}

func (m *middle) hear(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told = append(m.told, what)
}

// take is what a connection meets.
func (m *middle) take(conn net.Conn) {
	m.met.Add(1)
	c, channels, requests, err := ssh.NewServerConn(conn, m.config)
	if err != nil {
		return // the key exchange was all
	}
	m.hear("a login")
	go ssh.DiscardRequests(requests)
	for channel := range channels {
		m.hear("a channel " + channel.ChannelType())
		_ = channel.Reject(ssh.Prohibited, "")
	}
	_ = c.Close()
}

// heardNothing holds that he was connected to, and told nothing.
func (m *middle) heardNothing(t *testing.T) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.met.Load() == 0 || len(m.told) > 0 {
		t.Errorf("he was met %d times and was told %q", m.met.Load(), m.told)
	}
}

// A man in the middle of the first connection gets nothing but a key exchange.
func TestAManInTheMiddleOfTheFirstConnectionGetsNothing(t *testing.T) {
	long(t)
	t.Parallel()
	b := newBench(t, fakeaws.Options{})
	b.profile(2, quiet)
	m := newMiddle(t, nil)
	b.rig.Intercept("", m.take)
	c := b.command("up", "--plain")
	c.Env = append(c.Env, "DLWB_FIRST_KEY=3s")
	began := time.Now()
	r := b.play(c)
	t.Logf("it ended after %.1f s, with a limit of 3 s; he was met %d times", time.Since(began).Seconds(), m.met.Load())
	if r.code != 1 {
		t.Errorf("%s", r)
	}
	r.says(t, "host key", "nothing is sent to it", "receipt: everything is gone")
	m.heardNothing(t)
	b.nothingLeft("a man in the middle")
}

var firstHostKey = regexp.MustCompile(`(?s)-----BEGIN OPENSSH PRIVATE KEY-----.*?-----END OPENSSH PRIVATE KEY-----`)

// bootstrapKey is the host key that stood in the user-data of the launch.
func (b *bench) bootstrapKey() (text string, key ssh.Signer) {
	b.t.Helper()
	for _, call := range b.aws.Calls() {
		data, err := base64.StdEncoding.DecodeString(call.Params.Get("UserData"))
		if found := firstHostKey.FindString(string(data)); err == nil && found != "" {
			var lines []string
			for line := range strings.Lines(found) {
				lines = append(lines, strings.TrimSpace(line))
			}
			text = strings.Join(lines, "\n") + "\n"
			key, err := ssh.ParsePrivateKey([]byte(text))
			if err != nil {
				b.t.Fatal(err)
			}
			return text, key
		}
	}
	b.t.Fatal("no user-data holds a host key")
	return "", nil
}

// Whoever has read the user-data has the first host key: it is worth nothing
// once the machines have made their own.
func TestTheFirstHostKeyIsWorthNothingAfterTheFirstContact(t *testing.T) {
	long(t)
	t.Parallel()
	b := newBench(t, fakeaws.Options{})
	b.profile(2, quiet)
	if r := b.run("up", "--plain"); r.code != 0 {
		t.Fatal(r)
	}
	_, stolen := b.bootstrapKey()
	m := newMiddle(t, stolen)
	for _, id := range b.ids("running") {
		b.rig.Intercept(id, m.take)
		b.rig.Cut(id)
	}
	began := time.Now()
	for _, args := range [][]string{{"exec", "story", "--", "true"}, {"up", "--plain"}} {
		c := b.command(args...)
		c.Env = append(c.Env, "DLWB_FIRST_KEY=2s")
		r := b.play(c)
		if r.code == 0 {
			t.Errorf("%v: %s", args, r)
		}
		r.says(t, "host key")
	}
	t.Logf("exec and up were refused after %.1f s", time.Since(began).Seconds())
	m.heardNothing(t)
	if r := b.run("down", "story", "--plain"); r.code != 0 {
		t.Error(r)
	}
	b.nothingLeft("stolen key")
}
