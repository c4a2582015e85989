//go:build unix

package localjob

import (
	"testing"

	"github.com/dlwb/dlwb/internal/overlay"
)

// Build builds dlwb with this provider: its row in the table of providers, and
// the lines that make it known. Nothing else is touched.
func Build(t testing.TB) string {
	t.Helper()
	return overlay.Build(t, nil,
		overlay.Edit{File: "cloud/providers/providers.go", Changes: map[string]string{
			"\tlocal \"github":     "\tlocaljob \"github.com/dlwb/dlwb/internal/localjob/options\"\n\tlocal \"github",
			"slurm.Provider, sage": "slurm.Provider, localjob.Provider, sage",
		}},
		overlay.Edit{File: "cli/app.go", Changes: map[string]string{
			"\t\"github.com/dlwb/dlwb/internal/nearword\"\n":    "\t\"github.com/dlwb/dlwb/internal/localjob\"\n\t\"github.com/dlwb/dlwb/internal/nearword\"\n",
			"\t\tJobs: []cloud.JobProvider{\n":                  "\t\tJobs: []cloud.JobProvider{\n\t\t\tlocaljob.New(filepath.Join(dir, \"localjob\"), exe),\n",
			"var parts = map[string]func(args []string) int{\n": "var parts = map[string]func(args []string) int{\n\tlocaljob.Part: localjob.Main,\n",
		}})
}
