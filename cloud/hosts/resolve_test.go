//go:build unix

package hosts

import (
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// configuration is what people have in ~/.ssh/config, and what trips readers
// of it.
const configuration = `# defaults first
IdentityFile ~/.ssh/id_first
include %[1]s/more/*.conf

Host gpu? !gpu9 "head node"
	HostName=%%h.lab.example
	User = ada
	Port 2200 # the lab's
Host gpu*	bastion
  IdentityFile ~/.ssh/%%r-%%h
  IdentityFile "%[1]s/with space"
Host gpu1
  User nobody
  ProxyJump bastion
Match originalhost gpu2 user ada
  Port 9
  ProxyJump root@outer:2022,inner
Match host *.lab.example !user eve
  HostKeyAlias lab-%%%%
  UserKnownHostsFile %[1]s/known_%%k ~/.ssh/known_%%n
Match !all
  User never
Host deep
  Include %[1]s/deep.conf
  Port 77
Host bastion
  ProxyCommand none
  ProxyJump somewhere
Host i-0* tunnel
  ProxyCommand  sh -c "aws ssm start-session --target %h  --parameters 'portNumber=%p'" # no comment
Host tunnel
  ProxyJump bastion
Host inner
  User in
  ProxyJump nowhere
Host outer
  ProxyJump farther
  IdentitiesOnly yes
Host *.example
  IdentityAgent ~/agent-%%i.sock
Host *
  User fallback
  ServerAliveInterval 5
`

// configured writes the configuration and returns the world that has it.
func configured(t *testing.T) *world {
	w := newWorld(t)
	w.write("config", strings.NewReplacer("%[1]s", w.dir, "%%", "%").Replace(configuration))
	if err := os.Mkdir(w.path("more"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.write("more/a.conf", "Host gpu1\n  Port 2201\nHost other\n  Port 5\n")
	w.write("more/b.conf", "Match host gpu3\n  User grace\n")
	w.write("deep.conf", "HostName deep.example\nHost dee\n  Port 1\nHost d*\n  Port 78\n")
	return w
}

// TestNamesMeanWhatTheyMeanToSSH holds every setting against OpenSSH's own
// reader.
func TestNamesMeanWhatTheyMeanToSSH(t *testing.T) {
	w := configured(t)
	t.Setenv("USER", strings.TrimSpace(tool(t, "", "id", "-un")))
	me, err := user.LookupId(strconv.Itoa(os.Getuid()))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", me.HomeDir) // ssh's ~ is that of the user database, whatever HOME is
	r, err := w.resolver()
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range []string{
		"gpu1", "gpu2", "gpu3", "gpu9", "gpu10", "gpu", "eve@gpu4", "ada@gpu2:2222", "deep", "dee", "other", "inner", "x.example", "bastion", "10.0.0.7", "i-0abc", "tunnel",
	} {
		m, err := r.machine(entry, 0)
		if err != nil {
			t.Errorf("%s: %v", entry, err)
			continue
		}
		name, user, port := cutEntry(entry)
		args := []string{"-G", "-F", w.path("config")}
		if user != "" {
			args = append(args, "-l", user)
		}
		if port != "" {
			args = append(args, "-p", port)
		}
		says := settings{}
		for l := range strings.Lines(tool(t, "", "ssh", append(args, name)...)) {
			key, value, _ := strings.Cut(strings.TrimSpace(l), " ")
			says[key] = append(says[key], value)
		}
		compare := func(what, got, want string) {
			t.Helper()
			if got != want {
				t.Errorf("%s: %s is %q, and ssh says %q", entry, what, got, want)
			}
		}
		compare("hostname", m.HostName, says.one("hostname"))
		compare("user", m.User, says.one("user"))
		compare("port", itoa(m.Port), says.one("port"))
		compare("proxyjump", ask(r.config, name, user).get("proxyjump"), says.one("proxyjump"))
		command := ask(r.config, name, user).get("proxycommand")
		compare("proxycommand", strings.TrimPrefix(command, "none"), says.one("proxycommand"))
		compare("identitiesonly", map[bool]string{true: "yes", false: "no"}[m.Keys.OnlyFiles], says.one("identitiesonly"))
		compare("known hosts", strings.Join(m.Known[:len(m.Known)-3], " "), expandAll(t, m, strings.Fields(says.one("userknownhostsfile"))))
		var files []string
		for _, f := range says["identityfile"] {
			files = append(files, expandAll(t, m, []string{f}))
		}
		if len(ask(r.config, name, user).values["identityfile"]) > 0 && !slices.Equal(m.Keys.Files, files) {
			t.Errorf("%s: identity files are %q, and ssh says %q", entry, m.Keys.Files, files)
		}
	}
}

// settings are what ssh -G says.
type settings map[string][]string

// one is the last value of a key; empty when there is none.
func (s settings) one(key string) string {
	if v := s[key]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

func expandAll(t *testing.T, m machine, paths []string) string {
	t.Helper()
	for i, p := range paths {
		path, err := m.expand(p)
		if err != nil {
			t.Fatal(err)
		}
		paths[i] = path
	}
	return strings.Join(paths, " ")
}

func TestJumpHostsHaveTheirOwnSettings(t *testing.T) {
	w := configured(t)
	r, err := w.resolver()
	if err != nil {
		t.Fatal(err)
	}
	m, err := r.machine("ada@gpu2", 0)
	if err != nil {
		t.Fatal(err)
	}
	var way []string
	for _, j := range m.Jumps {
		way = append(way, j.User+"@"+j.addr())
	}
	// outer is reached as its own settings say; inner through outer, whatever
	// its own ProxyJump says: so does ssh.
	if got, want := strings.Join(way, " "), "fallback@farther:22 root@outer:2022 in@inner:22"; got != want {
		t.Errorf("the way is %q, want %q", got, want)
	}
}

func TestEntriesThatCanNotBeReachedAreRefusedInOneSentence(t *testing.T) {
	for name, c := range map[string]struct{ config, want string }{
		"command":  {"Host a\n ProxyCommand nc %C %p\n", "ProxyCommand: the token %C is not supported"},
		"fdpass":   {"Host a\n ProxyCommand nc -F %h %p\n ProxyUseFdpass yes\n", "ProxyUseFdpass in the ssh configuration is not supported"},
		"loop":     {"Host *\n ProxyJump b\n", "does a ProxyJump lead to itself?"},
		"include":  {"Include CONFIG\n", "does it include itself?"},
		"quote":    {"Host a\n IdentityFile \"x\n", "config:2: a quotation mark is not closed"},
		"no value": {"Host\n", "config:1: Host needs a value"},
		"token":    {"IdentityFile %C\n", "the token %C is not supported"},
		"port":     {"Port x\n", `"x" is no port`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("config", strings.ReplaceAll(c.config, "CONFIG", w.path("config")))
			got := w.check("a")
			want(t, got, "NO hosts: ", c.want)
		})
	}
}

func TestConfigurationIsFoundByTheEnvironment(t *testing.T) {
	w := configured(t)
	w.options.Config = ""
	t.Setenv("DLWB_SSH_CONFIG", w.path("config"))
	r, err := w.resolver()
	if err != nil {
		t.Fatal(err)
	}
	if m, _ := r.machine("gpu5", 0); m.HostName != "gpu5.lab.example" {
		t.Errorf("gpu5 is %q", m.HostName)
	}
	// Without it: the user's own file, and none is no error.
	t.Setenv("DLWB_SSH_CONFIG", "")
	t.Setenv("HOME", w.path("home"))
	for _, text := range []string{"", "Host gpu5\n HostName mine\nInclude sub\n"} {
		if text != "" {
			if err := os.MkdirAll(w.path("home/.ssh"), 0o700); err != nil {
				t.Fatal(err)
			}
			w.write("home/.ssh/config", text)
			w.write("home/.ssh/sub", "User of-sub\n")
		}
		if r, err = w.resolver(); err != nil {
			t.Fatal(err)
		}
	}
	m, err := r.machine("gpu5", 0)
	if err != nil || m.HostName != "mine" || m.User != "of-sub" || m.Keys.Files[0] != filepath.Join(w.path("home"), ".ssh/id_ed25519") {
		t.Errorf("%+v %v", m, err)
	}
}

func FuzzConfig(f *testing.F) {
	f.Add(configuration)
	f.Add("Host \"a b\\\" #\nMatch host=a,b exec x\n=\n")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(strings.ToLower(text), "include") {
			t.Skip("what it would read is this machine's")
		}
		path := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		config, err := readConfig(path, "", 0)
		if err != nil {
			return
		}
		r := &resolver{config: config}
		if m, err := r.machine("ada@gpu1:22", 0); err == nil && (m.User != "ada" || m.Port != 22) {
			t.Errorf("what was asked for was not kept: %+v", m)
		}
	})
}
