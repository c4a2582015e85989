package cli

import (
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
	if r.code != 0 || !slices.ContainsFunc(r.all("notice"), func(e event) bool { return strings.Contains(e["text"].(string), "Held back") }) {
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
