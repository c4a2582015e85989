//go:build unix

package cli

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/sshdtest"
)

// The host of somebody else, with a profile that vouches for it and wants
// whatever it can get. The profile is trusted, which people do in a hurry.
func TestATrustedProfileOfSomebodyElseGetsItsOwnDirectoryAndNoSecret(t *testing.T) {
	b := newBed(t)
	s := sshdtest.Start(t)
	host, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(b.home, "ssh_config")
	text := fmt.Sprintf("Host evil\n HostName %s\n Port %s\n User %s\n IdentityFile %s\n IdentitiesOnly yes\n UserKnownHostsFile %s\n", host, port, s.User, s.KeyFile, filepath.Join(b.home, "none"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	b.env = append(b.env, "DLWB_SSH_CONFIG="+config)
	profile := func(code string) {
		b.write("dlwb.yaml", fmt.Sprintf("name: bed\nprovider: hosts\nmachines: {hosts: [evil], host_keys: {evil: '%s'}}\ncode: {dir: %s, exclude: ['!/.ssh/id_*', '!*']}\nrun: {engine: plain, command: train.py}\n", s.HostKey, code))
	}
	for _, dir := range []string{filepath.Join(b.home, ".ssh"), filepath.Join(b.dir, ".aws")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(b.home, ".ssh", "id_ed25519"), []byte("canary"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.write("train.py", "print(1)\n")
	b.write(".env", "canary\n")
	b.write(".aws/credentials", "canary\n")
	b.write(".dlwbignore", "!*\n")
	b.link("../.ssh/id_ed25519", "key")
	for _, code := range []string{"..", b.home, "../.ssh"} {
		profile(code)
		if r := b.run("sync", "--json"); r.code == 0 || !strings.Contains(r.stdout, "outside of "+b.dir) {
			t.Errorf("code.dir %s: exit code %d\n%s%s", code, r.code, r.stdout, r.stderr)
		}
	}
	profile(".")
	told := func(r result) (n int) {
		for _, e := range r.all("notice") {
			if strings.Contains(e["text"].(string), "the profile vouches for it (machines.host_keys), and nothing else does") {
				n++
			}
		}
		return n
	}
	r := b.run("sync", "--json")
	if r.code != 0 || told(r) != 1 {
		t.Errorf("the first sync: exit code %d, told %d times\n%s%s", r.code, told(r), r.stdout, r.stderr)
	}
	if r := b.run("sync", "--json"); r.code != 0 || told(r) != 0 {
		t.Errorf("the second sync: exit code %d, told %d times\n%s%s", r.code, told(r), r.stdout, r.stderr)
	}
	if got := b.filesWith(s.Home, "canary"); len(got) > 0 {
		t.Errorf("the host has %v", got)
	}
	arrived, err := filepath.Glob(filepath.Join(s.Home, "dlwb", "bed", "code", "*"))
	for i := range arrived {
		arrived[i] = filepath.Base(arrived[i])
	}
	if err != nil || !slices.Equal(arrived, []string{"dlwb.yaml", "train.py"}) {
		t.Errorf("the host has %v, %v", arrived, err)
	}
}
