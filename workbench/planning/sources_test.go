package planning

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/dlwb/dlwb/profiles"
)

func TestWhatImportsPyTorchIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  bool
	}{
		"itself":           {map[string]string{"train.py": "import os\nimport torch.nn as nn\n"}, true},
		"by another":       {map[string]string{"train.py": "import models\n", "models/net.py": "if True:\n    from torch import nn\n"}, true},
		"Lightning":        {map[string]string{"a.py": "from lightning.pytorch import Trainer\n"}, true},
		"something else":   {map[string]string{"train.py": "import jax  # not import torch\n", "README.md": "import torch\n"}, false},
		"of its family":    {map[string]string{"train.py": "import torchvision.datasets\n"}, true},
		"of its own venv":  {map[string]string{"train.py": "print(1)\n", ".venv/lib/x.py": "import torch\n"}, false},
		"nothing in there": {nil, false},
	} {
		dir := t.TempDir()
		for file, text := range c.files {
			path := filepath.Join(dir, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		text := "name: x\nprovider: local\nrun: {command: train.py}\n"
		if err := os.WriteFile(filepath.Join(dir, "dlwb.yaml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		p, err := profiles.Load(filepath.Join(dir, "dlwb.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if got := ImportsTorch(p); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
