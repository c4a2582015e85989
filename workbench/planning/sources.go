package planning

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dlwb/dlwb/internal/pattern"
	"github.com/dlwb/dlwb/internal/plainfile"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/remote/engine"
	"github.com/dlwb/dlwb/remote/transfer"
)

const (
	// sourceMost bounds a text that is read for an engine; sourcesMost how many
	// there are; sourceDeep how deep below the script they lie.
	sourceMost  = 1 << 20
	sourcesMost = 200
	sourceDeep  = 3
)

// Sources are the texts of a project by which an engine completes a command: the
// training script, and the YAML files beside and below it, or a script for a shell,
// a file for make or a configuration that the command names. What can't be read is left out:
// nothing is filled in then.
func Sources(p *profiles.Profile) map[string]string {
	words, err := engine.Split(p.Run.Command)
	if err != nil || len(words) == 0 {
		return nil
	}
	root, err := os.OpenRoot(p.CodeDir())
	if err != nil {
		return nil
	}
	defer func() { _ = root.Close() }()
	texts := map[string]string{}
	if path.Base(words[0]) == "make" {
		words = append(words, "GNUmakefile", "makefile", "Makefile")
	}
	for _, w := range words {
		_, value, _ := strings.Cut(w, "=") // --config_file=fsdp.yaml
		for _, name := range []string{path.Clean(w), path.Clean(value)} {
			if filepath.IsLocal(name) && engineReads(name) {
				if text, ok := readSource(root, name); ok {
					texts[name] = text
				}
			}
		}
		name := path.Clean(w)
		if !filepath.IsLocal(name) || !strings.HasSuffix(name, ".py") {
			continue
		}
		if text, ok := readSource(root, name); ok {
			texts[name] = text
			readConfigs(root, path.Dir(name), texts)
			return texts
		}
	}
	return texts
}

// engineReads reports whether a file that a command names tells how it starts its
// ranks: a script for a shell, a file for make, a configuration of a launcher.
func engineReads(name string) bool {
	switch path.Ext(name) {
	case ".sh", ".bash", ".yaml", ".yml", ".json", ".mk":
		return true
	}
	return strings.HasSuffix(strings.ToLower(path.Base(name)), "makefile")
}

func readSource(root *os.Root, name string) (string, bool) {
	text, err := plainfile.ReadIn(root, filepath.FromSlash(name), sourceMost)
	return string(text), err == nil
}

// readConfigs reads the YAML files below a directory.
func readConfigs(root *os.Root, dir string, texts map[string]string) {
	_ = fs.WalkDir(root.FS(), dir, func(name string, d fs.DirEntry, err error) error {
		below := strings.Count(name, "/") - strings.Count(dir, "/")
		switch {
		case err != nil:
			return nil //nolint:nilerr // what can't be read is left out
		case d.IsDir() && name != dir && (strings.HasPrefix(d.Name(), ".") || below > sourceDeep):
			return fs.SkipDir
		case len(texts) >= sourcesMost:
			return fs.SkipAll
		}
		if ending := path.Ext(name); d.Type().IsRegular() && (ending == ".yaml" || ending == ".yml") {
			if text, ok := readSource(root, name); ok {
				texts[name] = text
			}
		}
		return nil
	})
}

// torches matches the import of PyTorch, or of what imports it.
var torches = pattern.New(`(?m)^\s*(import|from)\s+(torch\w*|lightning|pytorch_lightning|accelerate|deepspeed|transformers|diffusers|ultralytics|fastai)\b`)

// ImportsTorch reports whether some Python file of a project imports PyTorch. It
// looks as deep as for configurations.
func ImportsTorch(p *profiles.Profile) (imports bool) {
	root, err := os.OpenRoot(p.CodeDir())
	if err != nil {
		return false
	}
	defer func() { _ = root.Close() }()
	seen := 0
	_ = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // what can't be read is left out
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || strings.Count(name, "/") >= sourceDeep):
			return fs.SkipDir
		case imports || seen >= sourcesMost:
			return fs.SkipAll
		case d.Type().IsRegular() && path.Ext(name) == ".py":
			seen++
			text, _ := readSource(root, name)
			imports = torches.MatchString(text)
		}
		return nil
	})
	return imports
}

// ChangedSince tells which files of the code have changed since a moment. What of the
// profile makes other trials makes another sweep, too, so it does not count.
func (p *Plan) ChangedSince(code func() (*transfer.Tree, error)) func(time.Time) []string {
	code = sync.OnceValues(code)
	own, _ := filepath.Rel(p.Code.Dir, p.Profile.Path)
	return func(at time.Time) []string {
		tree, err := code()
		if err != nil {
			return nil // the sync says so
		}
		return slices.DeleteFunc(tree.ChangedSince(at), func(path string) bool { return path == filepath.ToSlash(own) })
	}
}
