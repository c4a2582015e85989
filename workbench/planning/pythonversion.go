package planning

import (
	"fmt"
	"os"
	"strings"

	"github.com/dlwb/dlwb/cloud/providers"
	"github.com/dlwb/dlwb/internal/pattern"
	"github.com/dlwb/dlwb/internal/plainfile"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/remote/environment"
)

var pythonVersion = pattern.New(`^3\.\d+(\.\d+)?$`)

// pythonWarnings say that a project is made for a Python which the profile does not
// ask for: uv and pyenv read the file, and here it counts for nothing.
func pythonWarnings(p *profiles.Profile) []string {
	kind := p.Environment.Kind
	if p.Environment.Python != "" || kind != environment.Venv && kind != environment.System || providers.Named(p.Provider).Traits.Sealed {
		return nil
	}
	root, err := os.OpenRoot(p.CodeDir())
	if err != nil {
		return nil
	}
	defer func() { _ = root.Close() }()
	text, err := plainfile.ReadIn(root, ".python-version", 1<<10)
	if err != nil {
		return nil
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	if first = strings.TrimSpace(first); !pythonVersion.MatchString(first) {
		return nil
	}
	return []string{fmt.Sprintf("the project is for Python %s, as .python-version says, which the nodes take no notice of: environment.python: %q in the profile asks for it", first, first)}
}
