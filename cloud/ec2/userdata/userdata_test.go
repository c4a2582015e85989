//go:build unix

package userdata

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/dlwb/dlwb/cloud"
)

var update = flag.Bool("update", false, "write the golden file anew")

// A whole document, with the scripts' texts and the keys left out.
func TestTheDocumentIsWhatCloudInitReads(t *testing.T) {
	private, public := newKey(t)
	text, err := Render(Boot{
		Life: "0123456789ab", Cluster: "charlm", User: "alice", SpotNotice: true,
		AuthorizedKey: public, HostKeyPrivate: private, HostKeyPublic: public,
		Lease: Lease{Bootstrap: 30 * time.Minute, Idle: time.Hour, Lifetime: 12 * time.Hour, Budget: 90 * time.Minute,
			Drain: cloud.Drain{S3: "s3://bucket/it's here/", Paths: []string{"dlwb/charlm/outputs/", "END of"}}, DrainLimit: 5 * time.Minute},
	})
	must(t, err)
	got := string(text)
	for _, name := range []string{"lease.sh", "watch.sh", "rotate.sh", "dlwb-lease.service"} {
		body := indent(script(name))
		if strings.Count(got, body) != 1 {
			t.Fatalf("%s is not in the document", name)
		}
		got = strings.Replace(got, body, " <"+name+">\n", 1)
	}
	for _, line := range strings.Fields(string(got)) {
		if rest, ok := strings.CutPrefix(line, "END_"); ok || strings.HasPrefix(line, "<<'END_") {
			got = strings.ReplaceAll(got, strings.TrimSuffix(strings.TrimPrefix(rest, "<<'END_"), "'"), "HASH")
		}
	}
	got = strings.ReplaceAll(got, strings.TrimSpace(public), "<public key>")
	got = strings.Replace(got, indent(indent(private)), "  <private key>\n", 1)
	golden := "testdata/golden.yaml"
	if *update {
		must(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want, err := os.ReadFile(golden)
	must(t, err)
	if got != string(want) {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	t.Logf("%d bytes of %d", len(text), MaxSize)
}

func TestTheKeysArriveAsTheyWereGiven(t *testing.T) {
	b := goodBoot(t)
	text, err := Render(b)
	must(t, err)
	d := parse(t, text)
	if !strings.HasPrefix(string(text), "#cloud-config\n") {
		t.Errorf("cloud-init would not know it: %.40s", text)
	}
	if d.Keys["ed25519_private"] != b.HostKeyPrivate || d.Keys["ed25519_public"] != strings.TrimSpace(b.HostKeyPublic) || len(d.Keys) != 2 {
		t.Errorf("host keys: %q", d.Keys)
	}
	if !slices.Equal(d.Authorized, []string{strings.TrimSpace(b.AuthorizedKey)}) {
		t.Errorf("authorized: %q", d.Authorized)
	}
	if !d.DeleteKeys || d.PasswordOK == nil || *d.PasswordOK || d.DisableRoot != nil || d.Users != nil {
		t.Errorf("%+v", d)
	}
	if len(d.Boot) != 1 {
		t.Fatalf("%d programs at boot", len(d.Boot))
	}
	if n := strings.Count(string(text), "PRIVATE KEY"); n != 2 {
		t.Errorf("PRIVATE KEY is %d times in it, want the first host key's begin and end", n)
	}
}

func TestALoginUserIsMadeBesidesTheImagesOwn(t *testing.T) {
	b := goodBoot(t)
	b.User = "alice"
	text, err := Render(b)
	must(t, err)
	d := parse(t, text)
	alice, _ := d.Users[1].(map[string]any)
	if len(d.Users) != 2 || d.Users[0] != "default" || alice["name"] != "alice" || len(d.Authorized) != 1 {
		t.Errorf("users: %v", d.Users)
	}
	b.User = "root"
	text, err = Render(b)
	must(t, err)
	if d := parse(t, text); d.DisableRoot == nil || *d.DisableRoot || d.Users != nil {
		t.Errorf("root: %+v", d)
	}
}

func TestWhatCouldMeanMoreThanItSaysIsRefused(t *testing.T) {
	otherPrivate, otherPublic := newKey(t)
	for name, change := range map[string]func(*Boot){
		"life":               func(b *Boot) { b.Life = "0123456789a'" },
		"cluster with quote": func(b *Boot) { b.Cluster = "a'; reboot; '" },
		"cluster with line":  func(b *Boot) { b.Cluster = "a\nruncmd: [reboot]" },
		"user":               func(b *Boot) { b.User = "a: b" },
		"two keys":           func(b *Boot) { b.AuthorizedKey += otherPublic },
		"key with options":   func(b *Boot) { b.AuthorizedKey = `command="reboot" ` + b.AuthorizedKey },
		"no key":             func(b *Boot) { b.AuthorizedKey = "" },
		"another host key":   func(b *Boot) { b.HostKeyPrivate = otherPrivate },
		"no host key":        func(b *Boot) { b.HostKeyPrivate = "" },
		"no public host key": func(b *Boot) { b.HostKeyPublic = "ssh-ed25519 AAAA" },
		"negative":           func(b *Boot) { b.Lease.Idle = -time.Second },
		"less than a second": func(b *Boot) { b.Lease.Lifetime = time.Millisecond },
		"centuries":          func(b *Boot) { b.Lease.Budget = 1<<63 - 1 },
		"not s3":             func(b *Boot) { b.Lease.Drain.S3 = "http://bucket" },
		"s3 with line":       func(b *Boot) { b.Lease.Drain.S3 = "s3://bucket/a\nEND" },
		"s3 with line of yaml": func(b *Boot) {
			b.Lease.Drain.S3 = "s3://bucket/a\u2028b"
		},
		"s3 with NEL":    func(b *Boot) { b.Lease.Drain.S3 = "s3://bucket/a\u0085b" },
		"s3 not utf-8":   func(b *Boot) { b.Lease.Drain.S3 = "s3://bucket/a\xff" },
		"absolute path":  func(b *Boot) { b.Lease.Drain.Paths = []string{"/etc"} },
		"path above":     func(b *Boot) { b.Lease.Drain.Paths = []string{"a/../../b"} },
		"the home":       func(b *Boot) { b.Lease.Drain.Paths = []string{"."} },
		"an option":      func(b *Boot) { b.Lease.Drain.Paths = []string{"-rf"} },
		"path with line": func(b *Boot) { b.Lease.Drain.Paths = []string{"a\nb"} },
		"too much": func(b *Boot) {
			b.Lease.Drain = cloud.Drain{S3: "s3://bucket", Paths: []string{noise(20_000)}}
		},
	} {
		b := goodBoot(t)
		change(&b)
		if text, err := Render(b); err == nil || text != nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

// What was accepted says the same to cloud-init and to sh as it says here.
func FuzzSettingsDoNotBreakOut(f *testing.F) {
	for _, s := range []string{"s3://bucket/x", "s3://bucket/'; touch /tmp/x; '", "s3://bucket/$(id)`id`\\", "s3://bucket/ # : - \"", "s3://bucket/é☃"} {
		f.Add("charlm", "ubuntu", s, "out/puts")
		f.Add("charlm", "", s, s)
		f.Add("a-1", "", "s3://bucket", "END_0'\"$x")
	}
	good := goodBoot(f)
	f.Fuzz(func(t *testing.T, cluster, user, s3, path string) {
		b := good
		b.Cluster, b.User, b.Lease.Drain = cluster, user, cloud.Drain{S3: s3, Paths: []string{path, "END_x"}}
		text, err := Render(b)
		if err != nil {
			return
		}
		d := parse(t, text)
		if len(d.Boot) != 1 || d.Boot[0] != b.program() {
			t.Fatalf("cloud-init reads another program")
		}
		if s3 == "" {
			return
		}
		cmd := exec.Command("dash", "-c", b.settings()+`printf '%s|%s|%s' "$cluster" "$s3" "$paths"`)
		out, err := cmd.CombinedOutput()
		want := cluster + "|" + strings.TrimRight(s3, "/") + "|" + filepath.Clean(path) + "\nEND_x"
		if err != nil || string(out) != want {
			t.Fatalf("%v: sh reads %q, want %q", err, out, want)
		}
	})
}

func TestTheProgramIsTheSameAfterYAML(t *testing.T) {
	b := goodBoot(t)
	text, err := Render(b)
	must(t, err)
	if got := parse(t, text).Boot[0]; got != b.program() {
		t.Errorf("got %q", got)
	}
	var keys map[string]any
	must(t, yaml.Unmarshal(text, &keys))
	if len(keys) != 5 {
		t.Errorf("the document has %d keys", len(keys))
	}
}

func TestTheFilesAreWrittenAsTheyAre(t *testing.T) {
	inEachShell(t, func(t *testing.T, shell string) {
		m := newMachine(t, shell, goodBoot(t))
		m.boot()
		for name, want := range map[string]string{"lease": "lease.sh", "watch": "watch.sh", "rotate": "rotate.sh"} {
			if got := m.read("var/lib/dlwb/" + name); got != m.rewritten(script(want)) {
				t.Errorf("%s is %q", name, got)
			}
		}
		if got := m.read("etc/systemd/system/dlwb-lease.service"); got != m.rewritten(script("dlwb-lease.service")) {
			t.Errorf("the unit is %q", got)
		}
	})
}

func TestSystemdIsToldWithoutWaiting(t *testing.T) {
	m := newMachine(t, "dash", goodBoot(t))
	must(t, os.MkdirAll(m.path("run/systemd/system"), 0o755))
	m.program("apt-get", "exit 1")
	m.boot()
	calls := m.read("calls")
	const upgrades = "apt-daily.timer apt-daily-upgrade.timer apt-daily.service apt-daily-upgrade.service unattended-upgrades.service"
	for _, want := range []string{
		"systemctl daemon-reload\nsystemctl enable --quiet dlwb-lease.service\nsystemctl start --no-block dlwb-lease.service\n",
		"systemctl mask --quiet " + upgrades + "\nsystemctl stop --no-block " + upgrades + "\n",
	} {
		if !strings.Contains(calls, want) {
			t.Errorf("no %q in %q", want, calls)
		}
	}
	if m.read("var/lib/dlwb/pid") != "" {
		t.Error("the lease was started by hand too")
	}
}

// noShellcheck allows the test to be skipped where there is no shellcheck.
const noShellcheck = "DLWB_TEST_NO_SHELLCHECK"

func TestTheScriptsAreCleanForShellcheck(t *testing.T) {
	if _, err := exec.LookPath("shellcheck"); err != nil {
		if os.Getenv(noShellcheck) != "" {
			t.Skipf("there is no shellcheck here, and %s is set", noShellcheck)
		}
		t.Fatalf("this test needs shellcheck: apt-get install -y shellcheck (or set %s=1 to skip it)", noShellcheck)
	}
	files, err := filepath.Glob("scripts/*.sh")
	if err != nil || len(files) != 4 {
		t.Fatalf("found %v (%v)", files, err)
	}
	program := filepath.Join(t.TempDir(), "boot.sh")
	must(t, os.WriteFile(program, []byte(goodBoot(t).program()), 0o600))
	if out, err := exec.Command("shellcheck", append([]string{"-s", "sh", program}, files...)...).CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}

func TestEachScriptSaysWhatItIs(t *testing.T) {
	for _, name := range []string{"lease", "watch", "rotate", "volumes"} {
		whole, err := scripts.ReadFile("scripts/" + name + ".sh")
		must(t, err)
		head, _, _ := strings.Cut(string(whole), "\ndir=")
		if !strings.HasPrefix(head, "#!/bin/sh\n# "+name) || !strings.Contains(head, "alled ") || !strings.Contains(head, "eaves") {
			t.Errorf("the first lines of %s do not tell what it is, who calls it and what it leaves: %s", name, head)
		}
		if lean := script(name + ".sh"); strings.Contains(lean, "<<") || strings.Contains(lean, "\n#") && strings.Count(lean, "\n#") > 1 {
			t.Errorf("%s does not bear that its comments and indents are taken away", name)
		}
	}
}

func TestTheUnitIsGoodForSystemd(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("NOT RUN: there is no systemd-analyze here")
	}
	unit := filepath.Join(t.TempDir(), "dlwb-lease.service")
	must(t, os.WriteFile(unit, []byte(script("dlwb-lease.service")), 0o600))
	out, err := exec.Command("systemd-analyze", "verify", "--man=no", unit).CombinedOutput()
	if err != nil || strings.Contains(string(out), "dlwb-lease") {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		t.Log("checked as a file only: systemd does not run here")
	}
}
