// Command gen writes what is made from the table of fields: the JSON schema
// and the reference page. Run it by "go generate ./profiles", or from anywhere
// in the repository by "go run ./profiles/gen".
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/dlwb/dlwb/profiles"
)

func main() {
	root, err := repository()
	if err == nil {
		err = write(filepath.Join(root, "profiles", "schema.json"), profiles.JSONSchema())
	}
	if err == nil {
		err = write(filepath.Join(root, "docs", "profile.md"), profiles.Reference())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// repository is the nearest directory upwards that has a go.mod.
func repository() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod here or above; run it inside the repository")
		}
		dir = filepath.Dir(dir)
	}
	return "", err
}

func write(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}
