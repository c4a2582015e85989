//go:build unix

package hosts

import (
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/sshdtest"
)

// peoples is a configuration with much of what people have in theirs.
const peoples = `Include conf.d/*.conf
Host gpu1 !gpu1x
  HostName %h.lab.example
  Port 2201
Match host *.lab.example
  User ada
  IdentityFile ~/.ssh/lab-%n-%r
Match originalhost gpu2,gpu3 user bob
  Port 2202
Host gpu2
  User=bob
  HostName "10.0.0.2"
Match originalhost gpu2 host 10.0.0.*
  Port 2203
Host gpu3
  User bob
Match originalhost gpu3 !localuser nobody
  IdentityAgent none
  IdentitiesOnly yes
Match originalhost gpu3
  CertificateFile ~/.ssh/gpu3-cert.pub
  HostKeyAlias alias3
Host jumped
  ProxyJump ada@bastion:2222,ssh://inner:23
Host common bastion inner
  ProxyJump none
Host none
  ProxyJump none
  UserKnownHostsFile ~/.ssh/k1 "/tmp/k 2"
Host v6
  HostName fe80::1%%lo
Host finally
  HostName 10.9.9.9
Match final host 10.9.9.9
  Port 2299
  User final
Match !final originalhost finally
  HostKeyAlias early
Host 10.9.9.9
  IdentityFile /tmp/byaddress
Host GPU4
  Port 2204
Host *
  Port 22
  ProxyJump common
`

// What dlwb makes of a configuration is what ssh makes of it.
func TestAConfigurationMeansWhatItMeansToSSH(t *testing.T) {
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip("NOT RUN: there is no OpenSSH client")
	}
	w := newWorld(t)
	w.write("config", peoples)
	r, err := w.resolver()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"gpu1", "gpu1x", "gpu2", "gpu3", "jumped", "none", "v6", "finally", "GPU4", "gpu4", "else", "ada@gpu2", "eve@gpu3"} {
		m, err := r.machine(name, 0)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		ours := map[string]string{"hostname": strings.ToLower(m.HostName), "port": strconv.Itoa(m.Port), "user": m.User, "hostkeyalias": m.KeyAlias}
		theirs := map[string]string{"hostkeyalias": ""}
		for line := range strings.Lines(tool(t, "X=", "ssh", "-F", w.path("config"), "-G", name)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			theirs[key] = value
		}
		if m.Jumps != nil {
			ours["proxyjump"] = m.Jumps[len(m.Jumps)-1].Alias
			theirs["proxyjump"], _, _ = strings.Cut(strings.TrimPrefix(theirs["proxyjump"], "ada@bastion:2222,"), ":")
		}
		if byAddress := strings.Contains(strings.Join(m.Keys.Files, " "), "/tmp/byaddress"); byAddress != (theirs["identityfile"] == "/tmp/byaddress") {
			t.Errorf("%s: its keys are %q here, and the last is %q for ssh", name, m.Keys.Files, theirs["identityfile"])
		}
		for key, value := range ours {
			if value != theirs[key] {
				t.Errorf("%s: %s is %q here and %q for ssh", name, key, value, theirs[key])
			}
		}
	}
}

// What an editor leaves beside a configuration is none, and neither are a directory and a
// link that leads nowhere.
func TestAnIncludeTakesInTheFilesThatItTakesInForSSH(t *testing.T) {
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip("NOT RUN: there is no OpenSSH client")
	}
	w := newWorld(t)
	for _, dir := range []string{"conf.d/old", ".hidden"} {
		if err := os.MkdirAll(w.path(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.write("conf.d/lab", "Host gpu1\n  Port 2201\n")
	w.write("conf.d/.lab.swp", "b0VIM 8.2 \"\nHost gpu1\n  Port 1\n")
	w.write("conf.d/old/lab", "Host gpu1\n  Port 2\n")
	w.write(".hidden/named", "Host gpu2\n  Port 2202\n")
	if err := os.Symlink("nowhere", w.path("conf.d/gone")); err != nil {
		t.Fatal(err)
	}
	w.write("config", "Include "+w.dir+"//conf.d/* "+w.path(".hidden/*")+" "+w.path("*/named")+"\n")
	r, err := w.resolver()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"gpu1", "gpu2"} {
		m, err := r.machine(name, 0)
		if err != nil {
			t.Fatal(err)
		}
		if says := tool(t, "X=", "ssh", "-F", w.path("config"), "-G", name); !strings.Contains(says, "\nport "+strconv.Itoa(m.Port)+"\n") || m.Port == 22 {
			t.Errorf("%s: the port is %d, and ssh says\n%s", name, m.Port, says)
		}
	}
}

// What turns a setting on for ssh does here.
func TestASettingIsOnInEachWordThatSSHTakesForIt(t *testing.T) {
	for value, on := range map[string]bool{"yes": true, "YES": true, "true": true, "no": false, "false": false} {
		w := newWorld(t)
		w.write("config", "IdentitiesOnly "+value+"\nCanonicalizeHostname "+value+"\n")
		r, err := w.resolver()
		if err != nil {
			t.Fatal(err)
		}
		m, err := r.machine("gpu1", 0)
		if err != nil || m.Keys.OnlyFiles != on || (len(m.Ignored) > 0) != on {
			t.Errorf("%s: only files: %v, ignored: %q, %v", value, m.Keys.OnlyFiles, m.Ignored, err)
		}
	}
}

// What a host's key may not be, and what of a configuration is not followed, is said.
func TestWhatIsRevokedOrNotFollowedIsSaid(t *testing.T) {
	w := newWorld(t)
	w.start("good")
	bad := w.start("bad")
	w.write("revoked", "# these\n"+bad.HostKey+"\n")
	w.write("krl", "SSHKRL\n\x00")
	w.write("config", "RevokedHostKeys "+w.path("revoked")+"\nHost good\n  AddressFamily inet\n  BindAddress 127.0.0.1\n"+mustRead(t, w.path("config")))
	want(t, w.check("good"), "ok good: reachable", "sets what dlwb does not follow: AddressFamily inet, BindAddress 127.0.0.1 | if that matters, ssh:good in machines.hosts")
	want(t, w.check("bad"), "NO bad: ", "is revoked by "+w.path("revoked"))
	for file, why := range map[string]string{"krl": "is a revocation list in ssh's own form", "none-there": "read RevokedHostKeys"} {
		w.write("config", "RevokedHostKeys "+w.path(file)+"\n"+strings.SplitN(mustRead(t, w.path("config")), "\n", 2)[1])
		want(t, w.check("good"), "NO good: ", why)
	}
}

// An address of a link names the interface of this machine that leads there.
func TestAnAddressMayNameAnInterface(t *testing.T) {
	w := newWorld(t)
	s := sshdtest.Start(t, sshdtest.Config("ListenAddress ::1"))
	_, port, _ := net.SplitHostPort(s.Addr)
	w.add("known_hosts", "[::1%lo]:"+port+" "+s.HostKey+"\n")
	w.add("config", "Host *\n  User "+s.User+"\n  IdentityFile "+s.KeyFile+"\n  IdentitiesOnly yes\n  UserKnownHostsFile "+w.path("known_hosts")+"\n")
	entry := "[::1%lo]:" + port
	want(t, w.check(entry), "ok "+entry+": reachable in ")
	m, err := (&resolver{}).machine("[fe80::1%eth0]:22", 0)
	if host, _, _ := m.peer(); err != nil || host != "fe80::1" {
		t.Errorf("the others are sent to %q, %v", host, err)
	}
}
