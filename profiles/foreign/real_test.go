package foreign

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/profiles"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Files that nobody here wrote: what is made of each, and each line that is named.
func TestRealFilesOfOtherToolsBecomeProfiles(t *testing.T) {
	files, err := filepath.Glob("testdata/real/*")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, file := range files {
		base := filepath.Base(file)
		if strings.HasSuffix(base, ".golden") || base == "README.md" {
			continue
		}
		kind, _, _ := strings.Cut(base, "-")
		kinds[kind]++
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got := described(t, base, text)
		golden := file + ".golden"
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil || string(want) != got {
			t.Errorf("%s (%v): got\n%s\nwant\n%s", base, err, got, want)
		}
	}
	for kind, least := range map[string]int{"ray": 3, "sky": 3, "ssm": 3, "compose": 3, "devcontainer": 3} {
		if kinds[kind] < least {
			t.Errorf("%d files of kind %s", kinds[kind], kind)
		}
	}
}

// described is what an import comes to.
func described(t *testing.T, name string, text []byte) string {
	if strings.HasPrefix(name, "devcontainer") {
		name = ".devcontainer/" + name
	}
	made, err := Import(filepath.Join("project", name), text, "train.py")
	if err != nil {
		return "refused: " + err.Error() + "\n"
	}
	p, err := profiles.Parse("project/dlwb.yaml", made.Profile)
	if err != nil {
		t.Errorf("%s: what was written can't be read: %v", name, err)
	} else if p.Name == "" {
		t.Errorf("%s has no name", name)
	}
	b := strings.Builder{}
	fmt.Fprintf(&b, "from %s\n\n", made.From)
	for line := range strings.Lines(string(made.Profile)) {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") && strings.TrimSpace(line) != "" {
			b.WriteString(line)
		}
	}
	b.WriteString("\n")
	for _, l := range made.Left {
		fmt.Fprintf(&b, "%d %s: %s\n", l.Line, l.What, l.Why)
	}
	return b.String()
}

func TestASecretOfTheFileIsLeftOutAndNamedWithoutItsValue(t *testing.T) {
	for name, text := range map[string]string{
		"docker-compose.yml": "services:\n  t:\n    image: x\n    command: python train.py\n    environment:\n      WANDB_API_KEY: 0123456789abcdef0123456789abcdef01234567\n      A: b\n",
		"task.yaml":          "resources: {accelerators: L4}\nenvs: {DB_PASSWORD: hunter2}\nrun: python train.py\n",
	} {
		made, err := Import(name, []byte(text), "train.py")
		said := string(made.Profile) + fmt.Sprint(made.Left)
		if err != nil || len(made.Secret) != 1 || strings.Contains(said, "hunter2") || strings.Contains(said, "0123456789abcdef") || !strings.Contains(said, made.Secret[0]) {
			t.Errorf("%s: %v %v\n%s", name, err, made.Secret, said)
		}
	}
}
