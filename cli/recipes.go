package cli

import (
	"log/slog"
	"os"
	"path/filepath"

	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/metrics/recipe"
	"github.com/dlwb/dlwb/sanitize"
	"github.com/dlwb/dlwb/settings"
)

// ownRecipes are the user's recipes for formats of metrics: recipes/*.yaml beside
// the settings.
func ownRecipes() ([]recipe.Recipe, error) {
	path, err := settings.Path()
	if err != nil {
		return nil, nil // a user without a home has none
	}
	return recipe.Load(os.DirFS(filepath.Dir(path)), "recipes")
}

// learnRecipes has the readers of metrics know the user's recipes. One that is
// wrong is left out: it is no reason to lose a run.
func learnRecipes() {
	metrics.Learn(func() []recipe.Recipe {
		own, err := ownRecipes()
		if err != nil {
			slog.Warn("recipes of metrics", "error", err)
		}
		return own
	})
}

// tellWrongRecipes says what is wrong with the user's recipes, where they are used
// at once.
func (a *app) tellWrongRecipes() {
	if _, err := ownRecipes(); err != nil {
		sanitize.Fprintf(a.err, "%v\n", err)
	}
}
