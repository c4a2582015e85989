package profiles

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A project whose packages are listed by Poetry, Pipenv or setuptools is told what to do,
// and one with a lock that the lock is not followed: what init says nothing of is found
// out on machines that are paid for.
func TestFilesOfPackagesThatNoEnvironmentIsMadeFromAreNamed(t *testing.T) {
	project := "[project]\nname = \"x\"\ndependencies = [\"six\"]\n"
	for name, c := range map[string]struct {
		files map[string]string
		says  string // empty: nothing of that kind
	}{
		"Pipenv":             {map[string]string{"Pipfile": "[packages]\nsix = \"*\"\n"}, "pipenv requirements > requirements.txt"},
		"Poetry alone":       {map[string]string{"pyproject.toml": "[tool.poetry.dependencies]\nsix = \"*\"\n", "poetry.lock": ""}, "poetry export -o requirements.txt"},
		"setuptools":         {map[string]string{"setup.py": "setup(install_requires=['six'])\n"}, "uv pip compile setup.py -o requirements.txt"},
		"a lock of uv":       {map[string]string{"pyproject.toml": project, "uv.lock": "version = 1\n"}, "uv.lock is not followed"},
		"a lock of Poetry":   {map[string]string{"pyproject.toml": project, "poetry.lock": ""}, "poetry.lock is not followed"},
		"a lock, and a list": {map[string]string{"requirements.txt": "six\n", "uv.lock": "version = 1\n", "setup.py": ""}, ""},
		"no lock":            {map[string]string{"pyproject.toml": project, "setup.py": ""}, ""},
	} {
		dir := t.TempDir()
		c.files["train.py"] = "print(1)\n"
		for file, text := range c.files {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, notes, err := Detect(dir, []string{"venv", "conda", "docker"})
		said := strings.Join(notes, "\n")
		if err != nil || !strings.Contains(said, c.says) {
			t.Errorf("%s: %v; %q is not said:\n%s", name, err, c.says, said)
		}
		if c.says == "" && (strings.Contains(said, "not followed") || strings.Contains(said, "export") || strings.Contains(said, "compile")) {
			t.Errorf("%s: more is said than is true:\n%s", name, said)
		}
	}
}
