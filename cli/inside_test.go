package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// outside makes files beside the project, of which a profile must send none.
func (b *bed) outside() string {
	b.t.Helper()
	dir := filepath.Join(b.home, "private")
	for name, text := range map[string]string{"letter.txt": "dear\n", "requirements.txt": "six\n"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			b.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			b.t.Fatal(err)
		}
	}
	return dir
}

func (b *bed) link(to, name string) {
	b.t.Helper()
	if err := os.Symlink(to, filepath.Join(b.dir, name)); err != nil {
		b.t.Fatal(err)
	}
}

func TestAProfileSendsNothingFromOutsideItsDirectory(t *testing.T) {
	b := newBed(t)
	private := b.outside()
	b.link(private, "src")
	b.link(filepath.Join(private, "requirements.txt"), "req.txt")
	b.link(b.home, "up")
	if err := os.Symlink(filepath.Join(b.dir, "up", "private"), filepath.Join(b.dir, "twice")); err != nil {
		t.Fatal(err)
	}
	for more, want := range map[string]string{
		"code: {dir: ..}\n":                                       `dlwb.yaml:7:13: code.dir "..": it is ` + b.home + ", outside of " + b.dir,
		"code: {dir: " + private + "}\n":                          `code.dir "` + private + `": it is ` + private,
		"code: {dir: src}\n":                                      `code.dir "src": it is ` + private,
		"code: {dir: twice}\n":                                    `code.dir "twice": it is ` + private,
		"code: {dir: ./x/../../private}\n":                        `code.dir "./x/../../private"`,
		"environment: {venv: req.txt}\n":                          `environment.venv "req.txt": it is ` + private + "/requirements.txt, outside of the code directory",
		"environment: {venv: ../.netrc}\n":                        `environment.venv`,
		"environment: {venv: " + private + "/requirements.txt}\n": `outside of the code directory`,
		"environment: {venv: .env}\n":                             `by its name it holds variables of a program`,
	} {
		b.profile("print('hello')\n", more)
		b.write(".env", "x=1\n")
		if err := os.WriteFile(filepath.Join(b.home, ".netrc"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, command := range [][]string{{"plan"}, {"sync", "--dry-run"}, {"sync"}, {"run"}, {"up"}} {
			r := b.run(command...)
			if r.code == 0 || !strings.Contains(r.stderr, want) {
				t.Errorf("%v with %q: exit code %d, and not %q:\n%s%s", command, more, r.code, want, r.stdout, r.stderr)
			}
		}
	}
	if made, _ := filepath.Glob(filepath.Join(b.home, "state", "local", "*")); len(made) > 0 {
		t.Errorf("clusters were made: %v", made)
	}
}

func TestTheUserLetsAProfileSendAnotherDirectory(t *testing.T) {
	b := newBed(t).withOneNode()
	private := b.outside()
	b.profile("print('hello')\n", "code: {dir: ../private}\n")
	if err := os.WriteFile(filepath.Join(private, "train.py"), []byte("print(1)\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := b.run("sync")
	for _, way := range []string{"--allow-code " + private, "code.allow in " + filepath.Join(b.home, ".config", "dlwb", "config.yaml")} {
		if r.code == 0 || !strings.Contains(r.stderr, way) {
			t.Errorf("exit code %d, and the way %q is not said:\n%s", r.code, way, r.stderr)
		}
	}
	if r := b.run("sync", "--allow-code", "../private"); r.code != 0 {
		t.Fatalf("allowed by a flag: %s%s", r.stdout, r.stderr)
	}
	if got := b.arrived(0); !slices.Equal(got, []string{"letter.txt", "requirements.txt", "train.py"}) {
		t.Errorf("node0 has %q", got)
	}
	if r := b.run("plan"); r.code == 0 {
		t.Error("a flag holds for one call only")
	}
	b.userSettings("code: {allow: [~/private]}\n")
	if r := b.run("plan"); r.code != 0 {
		t.Errorf("allowed by the settings: %s%s", r.stdout, r.stderr)
	}
	b.userSettings("code: {allow: [~/private/below, /nowhere]}\n")
	if r := b.run("plan"); r.code == 0 {
		t.Error("what lies below was allowed, and not the directory itself")
	}
}

func TestLinksOutOfTheProjectAreNotFollowed(t *testing.T) {
	b := newBed(t).withOneNode()
	private := b.outside()
	b.profile("print('hello')\n", "code: {exclude: ['!*']}\n")
	b.link(private, "data")
	b.link(filepath.Join(private, "letter.txt"), "letter")
	b.link("../private/letter.txt", "relative")
	b.link("data/letter.txt", "through")
	b.link("train.py", "fine")
	r := b.run("sync")
	if r.code != 0 || !strings.Contains(r.stdout+r.stderr, "Not sent, because the link points out of the project: data -> "+private) {
		t.Errorf("sync: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if got := b.arrived(0); !slices.Equal(got, []string{"dlwb.yaml", "fine", "train.py"}) {
		t.Errorf("node0 has %q", got)
	}
}
