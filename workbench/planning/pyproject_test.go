package planning

import (
	"strings"
	"testing"
)

func TestTheDependenciesOfAProjectAreRequirements(t *testing.T) {
	for text, want := range map[string]string{
		"[project]\nname = 'x'\ndependencies = [\n  'torch>=2.1', \"numpy; python_version < '3.13'\",\n]\n": "torch>=2.1\nnumpy; python_version < '3.13'\n",
		"[project]\nname = 'x'\n":                   "no project.dependencies",
		"[tool.poetry.dependencies]\ntorch = '*'\n": "for Poetry alone",
		"[project]\ndependencies = ['a'\nname = 3":  "p.toml:",
		"[project]\ndependencies = 'torch'":         "p.toml",
	} {
		got, err := dependencies("p.toml", []byte(text))
		if got != want && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
}
