package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/workbench"
)

// arrived lists the files of the project that a node has.
func (b *bed) arrived(node int) []string {
	b.t.Helper()
	top := b.code(node, "")
	var names []string
	err := filepath.Walk(top, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			rel, _ := filepath.Rel(top, path)
			names = append(names, rel)
		}
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return names
}

// userSettings writes the file of settings of the user.
func (b *bed) userSettings(text string) {
	b.t.Helper()
	path := filepath.Join(b.home, ".config", "dlwb", "config.yaml")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func TestAProjectCanNotLetItsSecretsGo(t *testing.T) {
	b := newBed(t)
	b.profile("print('hello')\n", "code: {exclude: ['!*', '!/.ssh/id_*']}\n")
	for _, dir := range []string{".ssh", ".aws", "keys"} {
		if err := os.Mkdir(filepath.Join(b.dir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b.write(".env", "TOKEN=x\n")
	b.write(".ssh/id_ed25519", "x\n")
	b.write(".aws/credentials", "x\n")
	b.write("keys/deploy", "-----BEGIN OPENSSH "+"PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n")
	b.write(".dlwbignore", "!*\n!.env\n")
	b.write(".gitignore", "!*\n")
	if r := b.run("plan"); !strings.Contains(r.stdout, "Held back, because it looks like secrets: 4 files: .aws/credentials, .env, .ssh/id_ed25519, keys/deploy.") ||
		!strings.Contains(r.stdout, "--send-secret") || !strings.Contains(r.stdout, "The project wants 4 of them sent") {
		t.Errorf("plan does not tell:\n%s%s", r.stdout, r.stderr)
	}
	var p workbench.SyncPreview
	b.answer(&p, "sync", "--dry-run")
	if len(p.Held) != 4 || p.Held[0].Path != ".aws/credentials" || p.Held[0].Why != "credentials of AWS" || !slices.Equal(p.Nodes[0].Send, []string{".gitignore", "dlwb.yaml", "train.py"}) {
		t.Errorf("as JSON: %+v", p)
	}
	r := b.run("sync", "--json")
	if r.code != 0 || !slices.ContainsFunc(r.all("notice"), func(e printedEvent) bool { return strings.Contains(e["text"].(string), "Held back") }) {
		t.Errorf("sync: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	for node := range 2 {
		if got := b.arrived(node); !slices.Equal(got, []string{".gitignore", "dlwb.yaml", "train.py"}) {
			t.Errorf("node%d has %q", node, got)
		}
	}
	b.userSettings("secrets:\n  send: [/.env]\n  hold: ['train*']\n")
	if r := b.run("sync", "--send-secret", "/keys/"); r.code != 0 {
		t.Errorf("sync: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	for node := range 2 {
		if got := b.arrived(node); !slices.Equal(got, []string{".env", ".gitignore", "dlwb.yaml", "keys/deploy"}) {
			t.Errorf("with what the user lets go, node%d has %q", node, got)
		}
	}
	b.userSettings("secret: {send: [x]}\n")
	if r := b.run("sync"); r.code == 0 || !strings.Contains(r.stderr, `config.yaml:1:1: key "secret": the settings have no such key; did you mean "secrets"?`) {
		t.Errorf("with settings that are wrong: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if r := b.run("down"); r.code != 0 {
		t.Errorf("settings that are wrong keep a cluster up: %s%s", r.stdout, r.stderr)
	}
}

func TestARunGetsTheSecretsThatTheUserNames(t *testing.T) {
	b := newBed(t).withOneNode()
	const value = "canary-7f1d9c3a-value"
	b.env = append(b.env, "MY_TOKEN="+value, "EMPTY=", "LINES=a\nb")
	b.profile("import os, hashlib\nprint('got', hashlib.sha256(os.environ['MY_TOKEN'].encode()).hexdigest())\n"+
		"assert os.environ['EMPTY'] == '' and os.environ['OTHER'] == 'x'\n"+
		"for p in os.listdir('/proc'):\n  try: assert '"+value[:6]+"' + '"+value[6:]+"' not in open('/proc/' + p + '/cmdline', errors='replace').read(), p\n  except OSError: pass\n",
		"  env: {EMPTY: theirs, OTHER: x}\n")
	r := b.run("plan", "--secret", "MY_TOKEN", "--secret", "EMPTY")
	if r.code != 0 || !strings.Contains(r.stdout, "secrets      MY_TOKEN, EMPTY, from this shell") || strings.Contains(r.stdout, value) {
		t.Errorf("plan: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	r = b.run("run", "--json", "--secret", "MY_TOKEN", "--secret", "EMPTY")
	if r.code != 0 {
		t.Fatalf("run: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	sum := sha256.Sum256([]byte(value))
	if logs := b.run("logs", "bed"); !strings.Contains(logs.stdout, "got "+hex.EncodeToString(sum[:])) {
		t.Errorf("the training got another value:\n%s%s", logs.stdout, logs.stderr)
	}
	if strings.Contains(r.stdout+r.stderr, value) {
		t.Error("the value was printed")
	}
	for _, file := range b.filesWith(filepath.Join(b.home, "state"), value) {
		// The nodes of a local cluster are below the state directory too.
		if info, err := os.Stat(file); filepath.Base(file) != "launch" || !strings.Contains(file, "/local/bed/") || err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s holds the value, %v", file, info.Mode())
		}
	}
	again := b.run("rerun", r.one(t, "run_started")["run"].(string), "--plan")
	if !strings.Contains(again.stdout, "the secret MY_TOKEN was given to it by --secret, and is not now") {
		t.Errorf("rerun does not tell:\n%s%s", again.stdout, again.stderr)
	}
	for args, want := range map[string]string{
		"MY_TOKN":    `--secret "MY_TOKN": it is not set in the shell that started dlwb; did you mean MY_TOKEN?`,
		"MY_TOKEN=x": "give the name alone",
		"my-token":   "this is no name of a variable",
		"RANK":       "dlwb sets this itself",
		"LINES":      "more than one line",
	} {
		for _, command := range []string{"run", "plan"} {
			if r := b.run(command, "--secret", args); r.code != ExitUsage || !strings.Contains(r.stderr, want) || strings.Contains(r.stderr, value) {
				t.Errorf("%s --secret %s: exit code %d\n%s", command, args, r.code, r.stderr)
			}
		}
	}
}

// filesWith lists the files below a directory that hold a text.
func (b *bed) filesWith(dir, text string) (found []string) {
	b.t.Helper()
	_ = filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || !info.Mode().IsRegular() {
			return nil
		}
		if content, err := os.ReadFile(path); err == nil && strings.Contains(string(content), text) {
			found = append(found, path)
		}
		return nil
	})
	return found
}
