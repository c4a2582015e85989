package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/overlay"
)

// The places that adding a provider touches: its folder, its row in the table,
// and the line that makes it known to the workbench. The provider of this test
// gives the nodes of this machine another name.
var (
	metalFolder = map[string]string{
		"cloud/metal/options/options.go": `// Package options describes a provider of this test.
package options

import "github.com/dlwb/dlwb/cloud/about"

var Provider = about.Provider{
	Name: "metal", Also: []string{"iron"}, Doc: "machines of a test", Traits: about.Traits{SharedHost: true},
	Options: []about.Option{{Key: "machines.rack", Doc: "The rack of the nodes.", Example: "a1",
		Place: about.In(func(m *Machines) *string { return &m.Rack })}},
	New: func() any { return new(Machines) },
}

type Machines struct{ Rack string }
`,
		"cloud/metal/metal.go": `// Package metal is a provider of this test.
package metal

import (
	"context"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/about"
	"github.com/dlwb/dlwb/cloud/local"
	"github.com/dlwb/dlwb/cloud/metal/options"
)

type Provider struct{ *local.Provider }

func (Provider) Kind() string { return options.Provider.Name }

func (p Provider) Check(ctx context.Context, s cloud.Spec) cloud.Preflight {
	out := p.Provider.Check(ctx, s)
	out.Findings = append(out.Findings, cloud.Finding{OK: true, What: "rack", Text: "room in rack " + about.Own[options.Machines](s.Own).Rack})
	return out
}

func (p Provider) Up(ctx context.Context, life cloud.Life, s cloud.Spec, say cloud.Progress) (cloud.Cluster, error) {
	c, err := p.Provider.Up(ctx, life, s, say)
	c.Provider = p.Kind()
	return c, err
}
`}
	metalRow = overlay.Edit{File: "cloud/providers/providers.go", Changes: map[string]string{
		"\tlocal \"github":   "\tmetal \"github.com/dlwb/dlwb/cloud/metal/options\"\n\tlocal \"github",
		"ec2.Provider, sage": "ec2.Provider, metal.Provider, sage",
	}}
	metalLine = overlay.Edit{File: "cli/app.go", Changes: map[string]string{
		"\t\"github.com/dlwb/dlwb/cloud/local\"\n": "\t\"github.com/dlwb/dlwb/cloud/local\"\n\t\"github.com/dlwb/dlwb/cloud/metal\"\n",
		"\t\t\tec2.New(": "\t\t\tmetal.Provider{Provider: local.New(filepath.Join(dir, \"metal\"), exe)},\n\t\t\tec2.New(",
	}}
)

// The places that adding an engine touches: its row, and its plan function in a
// file of its own.
var (
	pairsFile = map[string]string{"remote/engine/pairs.go": `package engine

func pairs(l layout) [][]Proc {
	made := plain(l)
	for _, procs := range made {
		for i := range procs {
			procs[i].Env = append(procs[i].Env, "PAIRS=1")
		}
	}
	return made
}
`}
	pairsRow = overlay.Edit{File: "remote/engine/engine.go", Changes: map[string]string{
		"var engines = []engine{\n": "var engines = []engine{\n\t{name: \"pairs\", also: []string{\"twos\"}, signs: `\\bimport pairs\\b`, uses: \"pairs\", owns: rankVars, plan: pairs},\n",
	}}
)

var shownHash = regexp.MustCompile(`--trust=([0-9a-f]{16,64})`)

// CONTRIBUTING.md says which places a new provider and a new engine touch. Here
// one of each is added there and nowhere else, and a run goes through its life
// with them.
func TestAProviderTouchesThreePlacesAndAnEngineTwo(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles dlwb")
	}
	dir := t.TempDir()
	program := overlay.Build(t, []map[string]string{metalFolder, pairsFile}, metalRow, metalLine, pairsRow)
	say := func(args ...string) (string, error) {
		cmd := exec.Command(program, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "DLWB_HOME="+filepath.Join(dir, "state"))
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	says := func(wants []string, args ...string) {
		t.Helper()
		out, err := say(args...)
		for _, want := range wants {
			if err != nil || !strings.Contains(out, want) {
				t.Errorf("dlwb %s: %v, and %q is not in\n%s", strings.Join(args, " "), err, want, out)
			}
		}
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("train.py", "import pairs\n")
	says([]string{"metal", "`machines.rack`", "only for metal", "`pairs`"}, "help", "profile")
	says([]string{"train.py uses pairs: the engine is pairs"}, "init")
	write("dlwb.yaml", "name: both\nprovider: iron\nmachines: {rack: a1}\nrun: {engine: twos, command: train.py}\n")
	for _, want := range []string{`did you mean "metal"?`, `did you mean "pairs"?`} {
		if out, err := say("plan", "dlwb.yaml"); err == nil || !strings.Contains(out, want) {
			t.Errorf("%v, and %q is not in\n%s", err, want, out)
		}
	}
	write("dlwb.yaml", "name: both\nprovider: metal\nmachines: {rack: a1}\nrun: {engine: pairs, command: env}\n")
	out, _ := say("plan", "dlwb.yaml")
	hash := shownHash.FindStringSubmatch(out)
	if hash == nil {
		t.Fatalf("no hash is shown in\n%s", out)
	}
	says([]string{"1 node on metal", "room in rack a1", "pairs"}, "plan", "dlwb.yaml", "--trust="+hash[1])
	says([]string{"PAIRS=1"}, "run", "dlwb.yaml", "--trust="+hash[1], "--plain", "--down")
}
