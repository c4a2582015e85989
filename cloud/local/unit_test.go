//go:build unix

package local

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/local/options"
)

var _ cloud.Provider = (*Provider)(nil)

func TestCheckFindsWhatWouldMakeUpFail(t *testing.T) {
	t.Parallel()
	p := provider(t)
	bad := func(p *Provider, spec cloud.Spec) []string {
		var whats []string
		for _, f := range p.Check(t.Context(), spec).Findings {
			if f.What == "" || f.Text == "" {
				t.Errorf("a finding without words: %+v", f)
			}
			if !f.OK {
				whats = append(whats, f.What)
			}
		}
		return whats
	}
	if got := bad(p, cloud.Spec{Name: "c", Count: 2}); got != nil {
		t.Errorf("a good spec: %v", got)
	}
	if entries, err := os.ReadDir(p.dir); err != nil || len(entries) > 0 {
		t.Errorf("check left something: %v %v", entries, err)
	}
	for _, spec := range []cloud.Spec{{Name: "c"}, {Name: "c", Count: 1000}, {Name: "a b", Count: 1}, {Name: "c", Count: 1, Own: &options.Machines{SimulateGPUs: -1}}} {
		if got := bad(p, spec); !slices.Equal(got, []string{"cluster"}) {
			t.Errorf("%+v: %v", spec, got)
		}
	}
	up(t, p, 1, 0)
	if got := bad(p, cloud.Spec{Name: "c", Count: 2}); !slices.Equal(got, []string{"cluster"}) {
		t.Errorf("another count: %v", got)
	}
	if got := bad(New("/no/such/directory", "/no/such/file"), cloud.Spec{Name: "c", Count: 1}); !slices.Contains(got, "dlwb binary") {
		t.Errorf("no binary: %v", got)
	}
}

func TestACheckSaysWhatDiffersAndThatThereIsNoRoomForTemporaryFiles(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	p := provider(t)
	said := func(spec cloud.Spec) (text string) {
		for _, f := range p.Check(t.Context(), spec).Findings {
			if !f.OK {
				text += f.Text + "; "
			}
		}
		return text
	}
	name := up(t, p, 1, 0).Name
	for want, spec := range map[string]cloud.Spec{
		"cluster " + name + " exists with 1 node, and 3 are asked for; ":                                 {Name: name, Count: 3},
		"cluster " + name + " exists with 0 GPUs on each node that are simulated, and 2 are asked for; ": {Name: name, Count: 1, Own: &options.Machines{SimulateGPUs: 2}},
	} {
		if got := said(spec); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "no"))
	if got := said(cloud.Spec{Name: name, Count: 1}); !strings.Contains(got, "temporary files, "+os.Getenv("TMPDIR")) {
		t.Errorf("without a TMPDIR: %q", got)
	}
}

func TestNoCredentialPassesToANode(t *testing.T) {
	t.Parallel()
	env := cleanEnv([]string{
		"PATH=/bin", "LC_ALL=C", "CUDA_VISIBLE_DEVICES=0", "PIP_INDEX_URL=http://mirror", "https_proxy=http://proxy",
		"AWS_ACCESS_KEY_ID=x", "AWS_PROFILE=x", "WANDB_API_KEY=x", "GITHUB_TOKEN=x", "SSH_AUTH_SOCK=x", "PIP_PASSWORD=x",
		"MISE_GITHUB_TOKEN=x", "CONDA_AUTH=x", "NGC_CLI_API_KEY=x", "HF_TOKEN=x", "HOME=/x", "DLWB_LOCAL=x", "LD_PRELOAD=x",
	})
	want := []string{"PATH=/bin", "LC_ALL=C", "CUDA_VISIBLE_DEVICES=0", "PIP_INDEX_URL=http://mirror", "https_proxy=http://proxy"}
	if !slices.Equal(env, want) {
		t.Errorf("passed: %q", env)
	}
}

func TestTheUsersOwnPackagesAreSeenAndThePipCacheIsShared(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3 here")
	}
	version, err := exec.Command(python, "-c", "import site,sys,os; print(os.path.relpath(site.getusersitepackages(), os.path.expanduser('~')))").Output()
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(t.TempDir(), "user's home")
	site := filepath.Join(home, strings.TrimSpace(string(version)))
	mkdir(t, site)
	mkdir(t, filepath.Join(home, ".cache", "pip"))
	write(t, filepath.Join(site, "only_here.py"), "value = 'seen'\n")
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("PIP_CACHE_DIR", "")
	p := provider(t)
	client := login(t, up(t, p, 1, 0), 0)
	if got := sh(t, client, `python3 -c 'import only_here; print(only_here.value)'`); got != "seen" {
		t.Error(got)
	}
	if runtime.GOOS == "linux" {
		if got := sh(t, client, `echo "$PIP_CACHE_DIR"`); got != filepath.Join(home, ".cache", "pip") {
			t.Error(got)
		}
	}
}

func TestStateAndBinaryMayLieInPathsWithSpaces(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "it's a dir")
	mkdir(t, dir)
	link := filepath.Join(dir, "dlwb binary")
	if err := os.Symlink(exe, link); err != nil {
		t.Fatal(err)
	}
	p := New(dir, link)
	defer func() {
		if r, err := p.Down(t.Context(), cloud.Life{Name: "c"}, nil); err != nil || !r.Proven() {
			t.Errorf("%v %+v", err, r)
		}
	}()
	c, err := p.Up(t.Context(), cloud.Life{}, cloud.Spec{Name: "c", Count: 1, Own: &options.Machines{SimulateGPUs: 1}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := login(t, c, 0)
	list := func() {
		t.Helper()
		if got := sh(t, client, "nvidia-smi -L"); !strings.HasPrefix(got, "GPU 0: Simulated GPU") {
			t.Error(got)
		}
		if got := sh(t, client, `$DLWB_SSH 2>&1 || echo $?`); !strings.Contains(got, "usage") || !strings.HasSuffix(got, "255") {
			t.Error(got)
		}
	}
	list()
	// Built anew or moved while the node runs: it still has its programs.
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "linux" {
		list()
	}
}

func TestOptionsOfAuthorizedKeys(t *testing.T) {
	t.Parallel()
	from := &net.TCPAddr{IP: net.ParseIP("127.0.0.1"), Port: 1}
	for _, c := range []struct {
		options []string
		want    grants
		bad     bool
	}{
		{nil, grants{pty: true, forward: true}, false},
		{[]string{"restrict"}, grants{}, false},
		{[]string{"restrict", "pty"}, grants{pty: true}, false},
		{[]string{`command=""`}, grants{pty: true, forward: true, forced: true}, false},
		{[]string{`RESTRICT`, `Command="sh -c \"a=b\""`}, grants{forced: true, command: `sh -c "a=b"`}, false},
		{[]string{`from="::1"`}, grants{}, true},
		{[]string{`from=""`}, grants{}, true},
		{[]string{`environment="A=b"`}, grants{}, true},
		{[]string{`tunnel="0"`}, grants{}, true},
	} {
		got, err := parseOptions(c.options, from)
		if (err != nil) != c.bad || (!c.bad && got != c.want) {
			t.Errorf("%q: %+v %v", c.options, got, err)
		}
	}
}

func TestPeerCallsThatCannotBeCheckedAreRefused(t *testing.T) {
	t.Parallel()
	good := []string{"-i", "k", "-p2222", "-o", "UserKnownHostsFile=h", "-o", "ConnectTimeout=5", "me@host", "stop", "x"}
	c, err := parsePeerCall(good)
	if err != nil || c.user != "me" || c.host != "host" || c.port != 2222 || c.command != "stop x" || c.key != "k" {
		t.Errorf("%+v %v", c, err)
	}
	for _, bad := range [][]string{
		nil, {"host"}, {"host", "command"}, {"-i", "k", "host", "command"}, {"-o", "UserKnownHostsFile=h", "host", "command"},
		append([]string{"-o", "StrictHostKeyChecking=no"}, good...), append([]string{"-o", "ProxyCommand=x"}, good...),
		append([]string{"-p", "0"}, good...), append([]string{"-p", "x"}, good...), append([]string{"-A"}, good...), {"-i"},
		append([]string{"-o", "ConnectTimeout=0"}, good...),
	} {
		if c, err := parsePeerCall(bad); err == nil {
			t.Errorf("%q was taken: %+v", bad, c)
		}
	}
}

func FuzzAuthorizedKeys(f *testing.F) {
	signer := mustKey(f)
	f.Add([]byte(`restrict,command="a \"b" ` + authorizedForm(signer.PublicKey())))
	f.Add([]byte("from=\"!*,127.0.0.1/33\" " + authorizedForm(signer.PublicKey())))
	f.Add([]byte("ssh-ed25519 AAAA"))
	f.Fuzz(func(t *testing.T, lines []byte) {
		may, err := authorizedBy(lines, signer.PublicKey(), &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil && may != (grants{}) {
			t.Errorf("refused, and yet granted: %+v", may)
		}
	})
}

func FuzzSMIArguments(f *testing.F) {
	f.Add("--query-gpu=index,name --format=csv -l 1")
	f.Add("-lms=5 -i 0 -L")
	f.Fuzz(func(t *testing.T, line string) {
		if c, err := parseSMI(append([]string{"node"}, strings.Fields(line)...)); err == nil {
			c.out = bufio.NewWriter(io.Discard)
			c.print(idle(1, "c"), true)
		}
	})
}

func TestAGPUThatNoNodeGetsIsTold(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	for _, c := range []struct {
		gpus, nodes int
		want, next  string
	}{
		{1, 2, "1 GPU of this machine can't be shared by 2 nodes: no node gets one", "machines.count: 1 "},
		{3, 2, "3 GPUs of this machine, shared evenly by 2 nodes: each gets 1, and 1 no node uses", "machines.count: 1 "},
		{8, 3, "each gets 2, and 2 no node uses", "machines.count: 1 "},
		{1, 1, "those of this machine, by ", ""}, {4, 2, "those of this machine, by ", ""}, {3, 1, "those of this machine, by ", ""},
		{0, 2, "those of this machine, by ", ""}, // it does not answer
	} {
		text := "#!/bin/sh\n[ $# = 1 ] && [ \"$1\" = -L ] || exit 1\n"
		for i := range c.gpus {
			text += fmt.Sprintf("echo 'GPU %d: NVIDIA A10G (UUID: GPU-%d)'\n", i, i)
		}
		// Written by a process of its own: nobody who forks meanwhile holds it open.
		write := exec.Command("sh", "-c", `cat >"$0.new" && chmod +x "$0.new" && mv "$0.new" "$0"`, filepath.Join(bin, "nvidia-smi"))
		write.Stdin = strings.NewReader(text)
		if err := write.Run(); err != nil {
			t.Fatal(err)
		}
		var told cloud.Finding
		for _, f := range New(t.TempDir(), "/bin/sh").Check(t.Context(), cloud.Spec{Name: "c", Count: c.nodes}).Findings {
			if f.What == "GPU" {
				told = f
			}
		}
		if !strings.Contains(told.Text, c.want) || !strings.Contains(told.Next, c.next) || !told.OK || (told.Result() == cloud.Warned) != (c.next != "") {
			t.Errorf("%d GPUs, %d nodes: %+v", c.gpus, c.nodes, told)
		}
	}
}
