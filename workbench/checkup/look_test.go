package checkup

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A look at a node may come beside a training: what it imports must not take the memory
// of the GPUs.
func TestALookTakesNoMemoryOfTheGPUs(t *testing.T) {
	dir := t.TempDir()
	const said = `import os
__version__ = os.environ.get("XLA_PYTHON_CLIENT_PREALLOCATE", "unset") + " " + os.environ.get("TF_FORCE_GPU_ALLOW_GROWTH", "unset")
`
	for name, text := range map[string]string{
		"jax.py":        said + "def devices(): return []\n",
		"tensorflow.py": said + "class config:\n    list_physical_devices = staticmethod(lambda kind: [])\nclass sysconfig:\n    get_build_info = staticmethod(lambda: {})\n",
		"torch.py":      "raise ImportError\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, theirs := range []string{"", "true"} { // what the image or the user's startup files set
		c := exec.Command("python3", "-")
		c.Stdin = strings.NewReader(lookScript)
		c.Env = append(os.Environ(), "PYTHONPATH="+dir)
		if theirs != "" {
			c.Env = append(c.Env, "XLA_PYTHON_CLIENT_PREALLOCATE="+theirs, "TF_FORCE_GPU_ALLOW_GROWTH=false")
		}
		out, err := c.Output()
		if err != nil {
			t.Fatal(err)
		}
		var seen struct {
			Frameworks map[string]struct{ Version, Error string }
		}
		if err := json.Unmarshal(out, &seen); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for _, name := range []string{"jax", "tensorflow"} {
			if f := seen.Frameworks[name]; f.Version != "false true" || f.Error != "" {
				t.Errorf("%s was imported with %q %s", name, f.Version, f.Error)
			}
		}
	}
}
