package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAUsersRecipeIsInTheConfigDirectory(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	recipes := filepath.Join(home, "dlwb", "recipes")
	if err := os.MkdirAll(recipes, 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(recipes, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("mine.yaml", "name: mine\nlines:\n  - match: '^<<(\\d+)>> E=(\\S+) ~ \\d+$'\n    read: 'step $1: energy: $2'\n")
	write("wrong.yaml", "name: wrong\nlines:\n  - match: '('\n    skip: line\n")
	log := filepath.Join(home, "train.log")
	if err := os.WriteFile(log, []byte("<<7>> E=0.5 ~ 12\n<<8>> E=0.25 ~ 13\n<<9>> E=0.125 ~ 11\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, complaints strings.Builder
	a := newApp(strings.NewReader(""), &out, &complaints)
	if code := a.run(t.Context(), []string{"metrics", log}); code != 0 {
		t.Fatalf("exit code %d: %s", code, &complaints)
	}
	if !strings.Contains(out.String(), "energy") || !strings.Contains(complaints.String(), "wrong.yaml") {
		t.Errorf("got %s\nand %s", &out, &complaints)
	}
}
