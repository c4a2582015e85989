//go:build unix

package hosts

import (
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/sshdtest"
)

// keygen runs OpenSSH's own ssh-keygen.
func keygen(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("ssh-keygen", args...).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen %v: %v %s", args, err, out)
	}
}

// certify has an authority sign the key of a host for a name, of which known_hosts
// knows the authority alone.
func (w *world) certify(alias, name string) {
	w.Helper()
	authority := w.path("ca-" + alias)
	public := sshdtest.MakeKey(w.T, authority)
	cert := w.path(alias + "-cert.pub")
	s := sshdtest.Start(w.T, sshdtest.Config("HostCertificate "+cert))
	w.write(alias+".pub", s.HostKey+"\n")
	keygen(w.T, "-q", "-s", authority, "-I", alias, "-h", "-n", name, w.path(alias+".pub"))
	s.Restart()
	w.host(alias, s)
	w.add("known_hosts", "@cert-authority "+knownName(s)+" "+public+"\n")
}

// What people have in their ssh files, and sshd in its own, on real OpenSSH.
func TestHostsOfPeoplesOwnConfigurationsAreReached(t *testing.T) {
	w := newWorld(t)
	w.start("outer")
	w.start("middle", sshdtest.Config("MaxSessions 1"))
	inner := sshdtest.Start(t, sshdtest.Config("MaxStartups 1"), sshdtest.Config("MaxSessions 1"))
	w.known(inner)
	w.write("more", "Match originalhost inner\n  ProxyJump outer,middle\n")
	w.host("inner", inner)
	w.start("busy")
	w.add("config", "Match originalhost busy\n  RemoteCommand tmux new -A\n  RequestTTY force\n  ControlMaster auto\n  ControlPath ~/none/%C\n"+
		"  ControlPersist 10m\n  SetEnv WANDB_MODE=offline\n  LocalForward 1 localhost:1\n  ForwardAgent yes\n  Compression yes\n")
	six := sshdtest.Start(t, sshdtest.Config("ListenAddress ::1"))
	six.Addr = strings.Replace(six.Addr, "127.0.0.1", "[::1]", 1)
	w.host("six", six)
	w.known(six)
	tokens := sshdtest.Start(t)
	_, port, _ := net.SplitHostPort(tokens.Addr)
	w.add("config", fmt.Sprintf("Host 127.0.0\n  HostName %%h.1\n  Port %s\n  User %s\n  IdentityFile %s/key-%%r-%%n\n  IdentitiesOnly yes\n  UserKnownHostsFile %s\n",
		port, tokens.User, w.dir, w.path("known_hosts")))
	if out, err := exec.Command("cp", tokens.KeyFile, w.path("key-"+tokens.User+"-127.0.0")).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	w.known(tokens)
	w.certify("signed", "127.0.0.1")
	w.certify("misnamed", "another.lab")
	w.start("password", sshdtest.Config("PubkeyAuthentication no"), sshdtest.Config("PasswordAuthentication yes"))
	keygen(t, "-q", "-H", "-f", w.path("known_hosts")) // no name can be read in it any more
	w.write("config", "Include "+w.path("more")+"\n"+mustRead(t, w.path("config")))
	if strings.Contains(mustRead(t, w.path("known_hosts")), knownName(inner)) {
		t.Fatal("known_hosts is not hashed")
	}
	for host, line := range map[string]string{
		"inner":    "ok inner: reachable in ",
		"busy":     "ok busy: reachable in ",
		"six":      "ok six: reachable in ",
		"127.0.0":  "ok 127.0.0: reachable in ",
		"signed":   "ok signed: reachable in ",
		"misnamed": "NO misnamed: ",
		"password": "NO password: sshd there takes no keys for " + inner.User + ", and dlwb logs in by keys only",
	} {
		t.Run(host, func(t *testing.T) {
			got := lines(New(w.options).Check(w.ctx(), spec(host)))
			want(t, got, line)
		})
	}
}
