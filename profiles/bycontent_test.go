package profiles

import (
	"os"
	"path/filepath"
	"testing"
)

// init once found nothing in a directory whose script is called fit.py.
func TestAScriptOfAnyNameIsFoundByWhatIsInIt(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"data.py":  "import torch\n",
		"fit.py":   "import argparse\nimport torch\n\nif __name__ == '__main__':\n    pass\n",
		"notes.py": "print('hello')\n",
		"tool.py":  "if __name__ == \"__main__\":\n    pass\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p, notes, err := Detect(dir, []string{"system"})
	if err != nil || p.Run.Command != "fit.py" || notes[0] != "fit.py is the training script; not chosen: data.py, tool.py" {
		t.Errorf("%v, %q, %v", p, notes, err)
	}
}
