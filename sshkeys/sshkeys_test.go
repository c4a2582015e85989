package sshkeys

import (
	"crypto/ed25519"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// keyFile writes a private key, with a passphrase unless that is empty.
func keyFile(t *testing.T, passphrase string) string {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "id")
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func gather(t *testing.T, files ...string) *Proof {
	t.Helper()
	p := Gather(t.Context(), Keys{Files: files}, time.Second)
	t.Cleanup(p.Close)
	return p
}

// answers is a person who is asked for passphrases and gives these, in order.
func answers(t *testing.T, texts ...string) *[]string {
	t.Helper()
	asked := &[]string{}
	AskWith(func(file string, again bool) ([]byte, bool) {
		if again {
			file += " again"
		}
		*asked = append(*asked, file)
		if len(*asked) > len(texts) {
			return nil, false
		}
		return []byte(texts[len(*asked)-1]), true
	})
	t.Cleanup(func() { AskWith(nil) })
	return asked
}

func TestPassphraseIsAskedUntilItIsRightAndThenRemembered(t *testing.T) {
	locked, plain := keyFile(t, "secret"), keyFile(t, "")
	asked := answers(t, "wrong", "secret")
	p := gather(t, plain, locked)
	if len(p.Signers) != 1 || len(p.Locked) != 1 || len(*asked) != 0 {
		t.Fatalf("before: %d signers, locked %q, asked %q", len(p.Signers), p.Locked, *asked)
	}
	if !p.Unlock() || strings.Join(*asked, ",") != locked+","+locked+" again" {
		t.Errorf("asked %q", *asked)
	}
	if p := gather(t, plain, locked); len(p.Signers) != 2 || len(p.Locked) != 0 {
		t.Errorf("after: %d signers, locked %q", len(p.Signers), p.Locked)
	}
	if !p.Unlock() || len(*asked) != 2 { // of another login that was under way
		t.Errorf("asked again: %q", *asked)
	}
}

func TestWhoDoesNotAnswerIsNotAskedAgain(t *testing.T) {
	locked := keyFile(t, "secret")
	asked := answers(t)
	for range 2 {
		if gather(t, locked).Unlock() {
			t.Error("a key was unlocked without its passphrase")
		}
	}
	if len(*asked) != 1 {
		t.Errorf("asked %q", *asked)
	}
	asked = answers(t, "a", "b", "c", "secret")
	if gather(t, locked).Unlock() || len(*asked) != passphraseTries {
		t.Errorf("asked %q", *asked)
	}
	AskWith(nil)
	if gather(t, locked).Unlock() {
		t.Error("nobody was asked, and a key was unlocked")
	}
}

// deviceKey is the private half of a key on a security key, as ssh-keygen
// writes it: a handle.
func deviceKey(t *testing.T) string {
	t.Helper()
	public := ssh.Marshal(struct {
		Type        string
		Key         []byte
		Application string
	}{"sk-ssh-ed25519@openssh.com", make([]byte, 32), "ssh:"})
	private := ssh.Marshal(struct {
		Check1, Check2 uint32
		Type           string
		Key            []byte
		Application    string
		Flags          byte
		Handle         []byte
		Reserved       []byte
		Comment        string
	}{1, 1, "sk-ssh-ed25519@openssh.com", make([]byte, 32), "ssh:", 1, make([]byte, 64), nil, "test"})
	for i := byte(1); len(private)%8 != 0; i++ {
		private = append(private, i)
	}
	body := append([]byte("openssh-key-v1\x00"), ssh.Marshal(struct {
		Cipher, KDF, Options string
		Count                uint32
		Public, Private      []byte
	}{"none", "none", "", 1, public, private})...)
	path := filepath.Join(t.TempDir(), "id_ed25519_sk")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "OPENSSH PRIVATE KEY", Bytes: body}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWhyAKeyWasNotTriedIsSaidAsItIs(t *testing.T) {
	asked := answers(t, "x")
	dir := t.TempDir()
	garbage := filepath.Join(dir, "garbage")
	if err := os.WriteFile(garbage, []byte("no key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	locked, device := keyFile(t, "secret"), deviceKey(t)
	for _, c := range []struct{ file, why, next string }{
		{locked, "has a passphrase, and the ssh agent does not hold it", "ssh-add " + locked},
		{device, "is on a security key", "ssh-add " + device},
		{garbage, "not tried: " + garbage + ": it is no private key", "ls -l " + garbage},
		{dir, "not tried: " + dir + ": it is no regular file (a directory)", "ls -l " + dir},
		{filepath.Join(dir, "none"), "", ""},
	} {
		p := gather(t, c.file)
		why, next := p.Missed()
		if !strings.Contains(why, c.why) || (why == "") != (c.why == "") || next != c.next || len(p.Signers) != 0 {
			t.Errorf("%s: %q, %q", c.file, why, next)
		}
		if c.file != locked && (p.Unlock() || strings.Contains(why, "passphrase")) {
			t.Errorf("%s is taken for one with a passphrase: %s", c.file, why)
		}
	}
	if len(*asked) != 0 {
		t.Errorf("asked %q", *asked)
	}
	if os.Getuid() == 0 {
		t.Log("NOT RUN: a file that may not be read: root may read all")
		return
	}
	if err := os.Chmod(garbage, 0); err != nil {
		t.Fatal(err)
	}
	if why, _ := gather(t, garbage).Missed(); !strings.Contains(why, "permission denied") {
		t.Errorf("a file that may not be read: %q", why)
	}
}

// An agent that has ended leaves its socket behind, and a shell in tmux the name of one:
// then it is the agent that is missed, and no key.
func TestAnAgentThatIsNotThereIsSaidBeforeTheKeysThatItMayHold(t *testing.T) {
	locked := keyFile(t, "secret")
	public := keyFile(t, "")
	signer, _, err := readKey(public)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(public, ssh.MarshalAuthorizedKey(signer.PublicKey()), 0o600); err != nil {
		t.Fatal(err)
	}
	socket, gone := filepath.Join(t.TempDir(), "agent"), filepath.Join(t.TempDir(), "id_gone")
	t.Setenv("SSH_AUTH_SOCK", socket)
	for name, c := range map[string]struct {
		keys      Keys
		why, next []string
		not       string
	}{
		"of the shell": {Keys{Agent: "SSH_AUTH_SOCK"}, []string{"can't be reached at " + socket + " (no such file or directory)"}, []string{"start the agent"}, ""},
		"named":        {Keys{Agent: socket + "2"}, []string{"can't be reached at " + socket + "2"}, []string{"IdentityAgent"}, ""},
		"locked key":   {Keys{Agent: socket, Files: []string{locked}}, []string{"can't be reached", "has a passphrase, and the ssh agent can't be asked for it"}, []string{"start the agent"}, "does not hold"},
		"public key":   {Keys{Agent: socket, Files: []string{public}}, []string{"can't be reached", public + " is a public key"}, []string{"start the agent"}, "no private key"},
		"no agent":     {Keys{Files: []string{public}}, []string{public + " is a public key", "does not hold it"}, []string{"ssh-add -l"}, "can't be reached"},
		"missing key":  {Keys{Files: []string{gone}, Named: true}, []string{gone + " is not there"}, []string{"ls -l " + gone}, "can't be reached"},
		"usual key":    {Keys{Files: []string{gone}}, nil, nil, "is not there"},
	} {
		p := Gather(t.Context(), c.keys, time.Second)
		why, next := p.Missed()
		p.Close()
		for _, want := range c.why {
			if !strings.Contains(why, want) {
				t.Errorf("%s: %q lacks %q", name, why, want)
			}
		}
		for _, want := range c.next {
			if !strings.Contains(next, want) {
				t.Errorf("%s: next is %q, and lacks %q", name, next, want)
			}
		}
		if c.not != "" && strings.Contains(why, c.not) || c.why == nil && why != "" {
			t.Errorf("%s: %q", name, why)
		}
	}
}
