package planning

import (
	"errors"
	"fmt"
	"strings"

	"github.com/BurntSushi/toml"
)

// dependencies are those of a pyproject.toml, as a file of requirements: what pip
// and uv install alike. The project itself is not installed: its code is sent.
func dependencies(name string, text []byte) (string, error) {
	var file struct {
		Project *struct {
			Dependencies []string `toml:"dependencies"`
		} `toml:"project"`
		Tool map[string]any `toml:"tool"`
	}
	err := toml.Unmarshal(text, &file)
	var where toml.ParseError
	switch {
	case errors.As(err, &where):
		return "", fmt.Errorf("%s:%d:%d: %s", name, where.Position.Line, where.Position.Col, where.Message)
	case err != nil:
		return "", fmt.Errorf("%s: %w", name, err)
	case file.Project == nil && file.Tool["poetry"] != nil:
		return "", fmt.Errorf("%s lists its dependencies for Poetry alone: write them as a file of requirements (poetry export)", name)
	case file.Project == nil || len(file.Project.Dependencies) == 0:
		return "", fmt.Errorf("%s has no project.dependencies", name)
	}
	return strings.Join(file.Project.Dependencies, "\n") + "\n", nil
}
