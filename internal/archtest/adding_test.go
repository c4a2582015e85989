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
		"\tlocal \"github":     "\tmetal \"github.com/dlwb/dlwb/cloud/metal/options\"\n\tlocal \"github",
		"slurm.Provider, sage": "slurm.Provider, metal.Provider, sage",
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

// The places that adding a command touches: a file, a line, and what it answers.
var (
	weatherFile = map[string]string{"cli/weather.go": `package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/dlwb/dlwb/sanitize"
)

type weatherAnswer struct {
	Sky string ` + "`json:\"sky\"`" + `
}

func (a *app) weatherCommand() *cobra.Command {
	return &cobra.Command{
		Use: "weather", Short: "say what the sky is like", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.answer(weatherAnswer{"clear"}, func(out io.Writer) { sanitize.Fprintf(out, "the sky is %s\n", "clear") })
		},
	}
}
`}
	weatherLine   = overlay.Edit{File: "cli/root.go", Changes: map[string]string{"a.rmCommand(), ": "a.weatherCommand(), a.rmCommand(), "}}
	weatherAnswer = overlay.Edit{File: "cli/reference.go", Changes: map[string]string{
		"\t\"doctor\":     {": "\t\"weather\":    {answer: weatherAnswer{}},\n\t\"doctor\":     {"}}
)

// The places that adding a format of metric files touches: its parser, and its
// name, its sign and its call in the file that tells formats apart.
var (
	stripesFile = map[string]string{"metrics/stripes.go": `package metrics

import (
	"bufio"
	"fmt"
	"io"
)

func readStripes(r io.Reader, add func(...Point)) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		var p Point
		var step int64
		if n, _ := fmt.Sscanf(lines.Text(), "| %s | %d | %g |", &p.Name, &step, &p.Value); n == 3 {
			p.Step = &step
			add(p)
		}
	}
	return lines.Err()
}
`}
	stripesCall = overlay.Edit{File: "metrics/read.go", Changes: map[string]string{
		"\tCSV          Format = ": "\tStripes Format = \"stripes\"\n\tCSV          Format = ",
		"\tcase CSV:\n":            "\tcase Stripes:\n\t\terr = readStripes(in, d.Set.Add)\n\tcase CSV:\n",
		"\tif isJSON(text) {\n":    "\tif bytes.HasPrefix(text, []byte(\"%stripes\")) {\n\t\treturn Stripes\n\t}\n\tif isJSON(text) {\n",
	}}
)

var shownHash = regexp.MustCompile(`--trust=([0-9a-f]{16,64})`)

// docs/architecture.md says which places each addition touches. Here one of each
// is added there and nowhere else, and used. (A screen is added in ui.)
func TestWhatIsAddedTouchesOnlyThePlacesThatAreListed(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles dlwb")
	}
	dir := t.TempDir()
	d := dlwb{t, dir, overlay.Build(t, []map[string]string{metalFolder, pairsFile, weatherFile, stripesFile},
		metalRow, metalLine, pairsRow, weatherLine, weatherAnswer, stripesCall)}
	d.hasAProviderAndAnEngine()
	d.says([]string{"the sky is clear"}, "weather")
	d.says([]string{`"sky":"clear"`}, "weather", "--json")
	d.says([]string{"weather", "say what the sky is like"}, "--help")
	d.says([]string{"`sky`"}, "help", "commands")
	d.write("out.stripes", "%stripes\n| loss | 1 | 0.5 |\n| loss | 2 | 0.25 |\n")
	d.says([]string{`"format":"stripes"`, `"name":"loss"`, "0.25"}, "metrics", "out.stripes", "--json")
}

// dlwb is one with additions, in a directory of its own.
type dlwb struct {
	*testing.T
	dir, program string
}

func (d dlwb) say(args ...string) (string, error) {
	cmd := exec.Command(d.program, args...)
	cmd.Dir, cmd.Env = d.dir, append(os.Environ(), "DLWB_KEEPER=off", "DLWB_HOME="+filepath.Join(d.dir, "state"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (d dlwb) says(wants []string, args ...string) {
	d.Helper()
	out, err := d.say(args...)
	for _, want := range wants {
		if err != nil || !strings.Contains(out, want) {
			d.Errorf("dlwb %s: %v, and %q is not in\n%s", strings.Join(args, " "), err, want, out)
		}
	}
}

func (d dlwb) write(name, text string) {
	d.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600); err != nil {
		d.Fatal(err)
	}
}

func (d dlwb) hasAProviderAndAnEngine() {
	d.Helper()
	d.write("train.py", "import pairs\n")
	d.says([]string{"metal", "`machines.rack`", "only for metal", "`pairs`"}, "help", "profile")
	d.says([]string{"train.py uses pairs: the engine is pairs"}, "init")
	d.write("dlwb.yaml", "name: both\nprovider: iron\nmachines: {rack: a1}\nrun: {engine: twos, command: train.py}\n")
	for _, want := range []string{`did you mean "metal"?`, `did you mean "pairs"?`} {
		if out, err := d.say("plan", "dlwb.yaml"); err == nil || !strings.Contains(out, want) {
			d.Errorf("%v, and %q is not in\n%s", err, want, out)
		}
	}
	d.write("dlwb.yaml", "name: both\nprovider: metal\nmachines: {rack: a1}\nrun: {engine: pairs, command: env}\n")
	out, _ := d.say("plan", "dlwb.yaml")
	hash := shownHash.FindStringSubmatch(out)
	if hash == nil {
		d.Fatalf("no hash is shown in\n%s", out)
	}
	d.says([]string{"1 node on metal", "room in rack a1", "pairs"}, "plan", "dlwb.yaml", "--trust="+hash[1])
	d.says([]string{"PAIRS=1"}, "run", "dlwb.yaml", "--trust="+hash[1], "--plain", "--down")
}
