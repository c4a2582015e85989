//go:build unix

package hosts

import (
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/hosts/options"
	"github.com/dlwb/dlwb/internal/sshdtest"
)

func TestUnknownHostKeyIsToldWithItsFingerprintAndNobodyLogsIn(t *testing.T) {
	w := newWorld(t)
	s := sshdtest.Start(t)
	w.host("gpu1", s, "StrictHostKeyChecking no")
	want(t, w.check("gpu1"), "NO gpu1: ", fingerprint(t, s.HostKey), "ssh gpu1 once", "machines.host_keys")
	if _, err := w.up("aa", "gpu1"); err == nil || !strings.Contains(err.Error(), "not known") {
		t.Errorf("got %v", err)
	}
	for _, sent := range []string{"Accepted", "Failed", "Postponed", "authenticating user"} {
		if strings.Contains(s.Log(), sent) {
			t.Errorf("the host saw a login (%q):\n%s", sent, s.Log())
		}
	}
}

func TestTypedYesIsAskedOnceAndKept(t *testing.T) {
	w := newWorld(t)
	s, other := sshdtest.Start(t), sshdtest.Start(t)
	w.host("bastion", s)
	w.host("gpu1", other, "ProxyJump bastion")
	w.host("gpu2", s, "ProxyJump bastion")
	w.confirm(false)
	want(t, w.check("gpu1", "gpu2"), "ok gpu1: warning: the jump host bastion", "you will be asked")
	if _, err := w.up("aa", "gpu1", "gpu2"); err == nil || len(w.asked) == 0 {
		t.Fatalf("got %v after a no, and asked %q", err, w.asked)
	}
	w.asked = nil
	w.confirm(true)
	c := w.mustUp("aa", "gpu1", "gpu2")
	if len(w.asked) != 2 { // bastion and gpu2 are the same address
		t.Errorf("asked %q, want one question for each of two addresses", w.asked)
	}
	if c.Nodes[0].HostKey != other.HostKey || c.Nodes[0].Jumps[0].HostKey != s.HostKey {
		t.Errorf("the nodes have other keys: %+v", c.Nodes)
	}
	w.mustUp("aa", "gpu1", "gpu2")
	if len(w.asked) != 2 {
		t.Errorf("asked again: %q", w.asked)
	}
	if _, err := w.down("aa"); err != nil {
		t.Error(err)
	}
	if text, _ := os.ReadFile(w.path("known_hosts")); len(text) > 0 {
		t.Errorf("the user's own file was written: %s", text)
	}
}

func TestChangedHostKeyStopsEverything(t *testing.T) {
	w := newWorld(t)
	w.confirm(true) // nobody is asked
	w.add("known_hosts", "# one\n\nnonsense\n")
	s := w.start("gpu1")
	shown := s.ChangeHostKey()
	got := w.check("gpu1")
	want(t, got, "NO gpu1: ", w.path("known_hosts")+":4", fingerprint(t, s.HostKey), fingerprint(t, shown), "Nothing was sent", "ssh-keygen -R '"+knownName(s)+"'")
	if _, err := w.up("aa", "gpu1"); err == nil || len(w.asked) > 0 {
		t.Errorf("got %v, asked %q", err, w.asked)
	}
}

// certify gives a server a certificate of its host key for a name.
func certify(t *testing.T, ca ssh.Signer, s *sshdtest.Server, path, principal string, ends time.Time) {
	t.Helper()
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(s.HostKey))
	if err != nil {
		t.Fatal(err)
	}
	cert := &ssh.Certificate{Key: key, CertType: ssh.HostCert, ValidPrincipals: []string{principal}, ValidBefore: uint64(ends.Unix())}
	if err := cert.SignCert(rand.Reader, ca); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, ssh.MarshalAuthorizedKey(cert), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Restart()
}

func TestKnownHostsAreReadAsSSHReadsThem(t *testing.T) {
	w := newWorld(t)
	cert := w.path("cert.pub")
	w.write("cert.pub", "")
	s := sshdtest.Start(t, sshdtest.Config("HostCertificate "+cert))
	w.host("gpu1", s)
	_, private, _ := ed25519.GenerateKey(rand.Reader)
	ca, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	certify(t, ca, s, cert, "127.0.0.1", time.Now().Add(time.Hour))
	authority := authorizedForm(ca.PublicKey())
	other := sshdtest.MakeKey(t, w.path("other"))
	name := knownName(s)
	for _, c := range []struct {
		what, known string
		ok          bool
		says        string
	}{
		{"plain", name + " " + s.HostKey, true, ""},
		{"among several names", "a,b," + name + " " + s.HostKey + " comment", true, ""},
		{"pattern", "[127.0.0.?]:* " + s.HostKey, true, ""},
		{"without its port", "127.0.0.1 " + s.HostKey, true, ""},
		{"another on port 22", "127.0.0.1 " + other, false, "not known"},
		{"one of two", name + " " + other + "\n" + name + " " + s.HostKey, true, ""},
		{"excluded by a pattern", "!" + name + ",!127.0.0.1,* " + s.HostKey, false, "not known"},
		{"changed", name + " " + other, false, "known_hosts:1 says"},
		{"authority", "@cert-authority [127.0.0.1]:* " + authority, true, ""},
		{"authority beside another key", name + " " + other + "\n@cert-authority * " + authority, true, ""},
		{"an authority is no host key", "@cert-authority * " + s.HostKey, false, "not the known one"},
		{"another authority", "@cert-authority * " + other, false, "no authorities"},
		{"revoked key", name + " " + s.HostKey + "\n@revoked * " + s.HostKey, false, "revoked by " + w.path("known_hosts") + ":2"},
		{"revoked authority", "@cert-authority * " + authority + "\n@revoked * " + authority, false, "revoked by"},
	} {
		t.Run(c.what, func(t *testing.T) {
			for _, hashed := range []bool{false, true} {
				w.write("known_hosts", c.known+"\n")
				if hashed {
					tool(t, "", "ssh-keygen", "-H", "-f", w.path("known_hosts"))
				}
				got := w.check("gpu1")
				if ok := strings.HasPrefix(got, "ok gpu1"); ok != c.ok || !strings.Contains(got, c.says) {
					t.Errorf("hashed %v: %s", hashed, got)
				}
			}
		})
	}
	w.write("known_hosts", "@cert-authority * "+authority+"\n")
	for what, change := range map[string]func(){
		"not valid for principal": func() { certify(t, ca, s, cert, "elsewhere", time.Now().Add(time.Hour)) },
		"expired":                 func() { certify(t, ca, s, cert, "127.0.0.1", time.Now().Add(-time.Hour)) },
	} {
		change()
		if got := w.check("gpu1"); !strings.HasPrefix(got, "NO gpu1") {
			t.Errorf("%s: %s", what, got)
		}
	}
	w.write("config", fmt.Sprintf("Host gpu1\n HostKeyAlias lab\n%s", mustRead(t, w.path("config"))))
	w.write("known_hosts", "lab "+s.HostKey+"\n")
	want(t, w.check("gpu1"), "ok gpu1: reachable")
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestProfileMayVouchForAKey(t *testing.T) {
	w := newWorld(t)
	s := sshdtest.Start(t)
	w.host("gpu1", s)
	other := sshdtest.MakeKey(t, w.path("other"))
	sp := spec("gpu1")
	for _, key := range []string{s.HostKey, fingerprint(t, s.HostKey), "ssh-ed25519 " + fingerprint(t, s.HostKey)} {
		sp.Own.(*options.Machines).HostKeys = map[string]string{"gpu1": key}
		want(t, lines(w.Check(w.ctx(), sp)), "ok gpu1: reachable")
	}
	w.known(s)
	for _, key := range []string{other, fingerprint(t, other), "nonsense"} {
		sp.Own.(*options.Machines).HostKeys = map[string]string{"gpu1": key}
		want(t, lines(w.Check(w.ctx(), sp)), "NO gpu1: ", "the profile says "+key)
	}
}

func TestKeyThatOnlyAProfileVouchesForIsSaidOnce(t *testing.T) {
	w := newWorld(t)
	s := sshdtest.Start(t)
	w.host("gpu1", s)
	sp := spec("gpu1")
	sp.Own.(*options.Machines).HostKeys = map[string]string{"gpu1": fingerprint(t, s.HostKey)}
	up := func(life string, sp cloud.Spec) ([]string, error) {
		c, err := w.Up(w.ctx(), w.life(life), sp, nil)
		if err == nil {
			if _, err := w.down(life); err != nil {
				t.Error(err)
			}
		}
		return c.Notices, err
	}
	want(t, lines(w.Check(w.ctx(), sp)), "ok gpu1: reachable") // it looks, and writes nothing down
	said, err := up("aa", sp)
	if err != nil || len(said) != 1 {
		t.Fatalf("said %q, %v", said, err)
	}
	want(t, said[0], "gpu1 (", fingerprint(t, s.HostKey), "the profile vouches for it (machines.host_keys), and nothing else does. This is said once")
	if said, err := up("bb", sp); err != nil || len(said) > 0 {
		t.Errorf("the second time: %q, %v", said, err)
	}
	// Another profile, or the same one changed, vouches for another key.
	was := fingerprint(t, s.HostKey)
	is := s.ChangeHostKey()
	sp.Own.(*options.Machines).HostKeys["gpu1"] = fingerprint(t, is)
	refused := []string{"NO gpu1: ", "vouched_hosts:1 says", was, fingerprint(t, is), "Nothing was sent", "one vouched for the known key before", "ssh-keygen -R '" + knownName(s) + "' -f "}
	want(t, lines(w.Check(w.ctx(), sp)), refused...)
	if _, err := up("cc", sp); err == nil || !strings.Contains(err.Error(), "is not the known one") {
		t.Errorf("another key: %v", err)
	}
	file := w.path("state/vouched_hosts")
	tool(t, "", "ssh-keygen", "-R", knownName(s), "-f", file)
	if said, err := up("dd", sp); err != nil || len(said) != 1 {
		t.Errorf("after the advice: %q, %v", said, err)
	}
}

// A profile's word is not above what the user knows: a changed key stays an error.
func TestAProfileCanNotVouchAgainstTheUsersKnownHosts(t *testing.T) {
	w := newWorld(t)
	s := w.start("gpu1")
	known := fingerprint(t, s.HostKey)
	is := s.ChangeHostKey()
	sp := spec("gpu1")
	for _, key := range []string{is, fingerprint(t, is)} {
		sp.Own.(*options.Machines).HostKeys = map[string]string{"gpu1": key}
		want(t, lines(w.Check(w.ctx(), sp)), "NO gpu1: ", w.path("known_hosts")+":1 says", known, fingerprint(t, is), "Nothing was sent", "ssh-keygen -R '"+knownName(s)+"'")
	}
	tool(t, "", "ssh-keygen", "-R", knownName(s), "-f", w.path("known_hosts"))
	want(t, lines(w.Check(w.ctx(), sp)), "ok gpu1: reachable")
}

func TestKeyThatTheUserKnowsTooIsNothingNew(t *testing.T) {
	w := newWorld(t)
	s := w.start("gpu1")
	sp := spec("gpu1")
	sp.Own.(*options.Machines).HostKeys = map[string]string{"gpu1": s.HostKey}
	c, err := w.Up(w.ctx(), w.life("aa"), sp, nil)
	if err != nil || len(c.Notices) > 0 {
		t.Errorf("said %q, %v", c.Notices, err)
	}
	if _, err := w.down("aa"); err != nil {
		t.Error(err)
	}
}

func TestHostWithSeveralKeysShowsTheKnownOne(t *testing.T) {
	w := newWorld(t)
	tool(t, "", "ssh-keygen", "-q", "-t", "rsa", "-b", "2048", "-N", "", "-f", w.path("rsa"))
	s := sshdtest.Start(t, sshdtest.Config("HostKey "+w.path("rsa")))
	w.host("gpu1", s)
	rsa := strings.Join(strings.Fields(mustRead(t, w.path("rsa.pub")))[:2], " ")
	w.add("known_hosts", knownName(s)+" "+rsa+"\n")
	c := w.mustUp("aa", "gpu1")
	if c.Nodes[0].HostKey != rsa {
		t.Errorf("the node has the key %s, want the known one", c.Nodes[0].HostKey)
	}
	if _, err := w.down("aa"); err != nil {
		t.Error(err)
	}
}

func FuzzKnownHosts(f *testing.F) {
	_, private, _ := ed25519.GenerateKey(rand.Reader)
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		f.Fatal(err)
	}
	f.Add("host " + authorizedForm(signer.PublicKey()))
	f.Add("|1|a|b|c " + authorizedForm(signer.PublicKey()))
	f.Add("@cert-authority !x,* ssh-ed25519 AAAA\n@revoked")
	f.Fuzz(func(t *testing.T, text string) {
		path := t.TempDir() + "/known"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		k, err := knownOf(machine{HostName: "elsewhere", Port: 2, Known: []string{path}})
		if err != nil {
			t.Fatal(err)
		}
		_, other, _ := ed25519.GenerateKey(rand.Reader)
		stranger, _ := ssh.NewSignerFromKey(other)
		if _, err := k.check(stranger.PublicKey()); err == nil {
			t.Error("a key that stands in no file was accepted")
		}
	})
}
