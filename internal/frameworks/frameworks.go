// Package frameworks runs every engine with its real framework, on nodes of this
// machine: `make test-frameworks`. What ran, and with which version, is a table in
// docs/engines.md, which is made from results.json.
package frameworks

//go:generate go run ./gen

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/remote/engine"
)

//go:embed results.json
var stored []byte

//go:embed scripts
var scripts embed.FS

// Trial is an engine with what it is tried with.
type Trial struct {
	Engine string
	// Venv is the environment below the cache directory, Script the program that
	// sums ones over all ranks.
	Venv, Script string
	// Launcher stands before the script in the command; empty: nothing.
	Launcher string
	// Absent says why its framework can't be had; empty where it can.
	Absent string
}

// Trials are all engines.
var Trials = []Trial{
	{Engine: "torchrun", Venv: "torch", Script: "torch_sum.py"},
	{Engine: "plain", Venv: "torch", Script: "torch_sum.py"},
	{Engine: "jax", Venv: "jax", Script: "jax_sum.py"},
	{Engine: "tensorflow", Venv: "tensorflow", Script: "tensorflow_sum.py"},
	{Engine: "mpi", Venv: "jax", Script: "mpi_sum.py"},
	{Engine: "horovod", Venv: "horovod", Script: "horovod_sum.py"},
	{Engine: "lightning", Venv: "torch", Script: "lightning_sum.py"},
	{Engine: "accelerate", Venv: "torch", Script: "accelerate_sum.py"},
	{Engine: "deepspeed", Venv: "torch", Script: "deepspeed_sum.py"},
	{Engine: "ray", Venv: "torch", Script: "ray_sum.py"},
}

// Shape is how many nodes there are, and ranks on each.
type Shape struct{ Nodes, Procs int }

// Shapes are those that are tried.
var Shapes = []Shape{{1, 1}, {1, 2}, {2, 1}, {2, 2}, {4, 1}, {4, 2}}

func (s Shape) String() string { return fmt.Sprintf("%d × %d", s.Nodes, s.Procs) }

// Results are what the trials came to: by engine, what each shape said, and how
// long the others lived after a rank was killed.
type Results map[string]*Result

// Result is what is known of one engine.
type Result struct {
	// Version is that of the framework, by its own word.
	Version string `json:"version,omitempty"`
	// Cells hold "ok", or what went wrong, by shape.
	Cells map[string]string `json:"cells,omitempty"`
	// Killed is what came of a rank that was killed.
	Killed string `json:"killed,omitempty"`
	// Ways is what came of the keys that only this engine has.
	Ways map[string]string `json:"ways,omitempty"`
}

// Stored are the results of the last time that all was run.
func Stored() (Results, error) {
	r := Results{}
	return r, json.Unmarshal(stored, &r)
}

// Text is results as they are stored.
func (r Results) Text() ([]byte, error) {
	text, err := json.MarshalIndent(r, "", "  ")
	return append(text, '\n'), err
}

// of is the result of an engine, made where there is none.
func (r Results) of(engine string) *Result {
	if r[engine] == nil {
		r[engine] = &Result{}
	}
	if r[engine].Cells == nil {
		r[engine].Cells = map[string]string{}
	}
	return r[engine]
}

const pageHead = `# Engines

<!-- Made by go generate ./internal/frameworks from the table in remote/engine and from internal/frameworks/results.json,
     which make test-frameworks writes. -->

An engine is what starts the ranks: ` + "`run.engine`" + ` in the profile, or what dlwb finds by itself. Whatever it is, each rank has its own
log, its own exit record and its own name in the verdict, one rank that dies ends all others, and nothing is left running.

| engine | also written | starts | it is chosen for scripts that use | keys of its own |
|---|---|---|---|---|
`

const pageMiddle = `
A launcher in front of the command (` + "`torchrun …`, `python -m torch.distributed.run …`, `python -m torch.distributed.launch …`, `accelerate launch …`, `deepspeed …`, `mpirun …`, `horovodrun …`" + `)
is recognised: it chooses the engine where the profile leaves that open, its options are taken over, and those that dlwb sets
itself are left out. ` + "`dlwb plan`" + ` says which. What the engine runs besides the ranks, what it waits for and which files it needs is in the plan too.

## What ran

By ` + "`make test-frameworks`" + `, on nodes that are processes of one Linux machine, without GPUs (Gloo, CPU): ones are summed over all ranks, and
the sum must be the world size on each of them. The columns are nodes × ranks of a node; "–" was not tried. In the last column one rank was
killed with SIGKILL while all were busy: after how long the last process had ended, and whom the verdict named.

`

// Page is docs/engines.md.
func (r Results) Page() string {
	var b strings.Builder
	b.WriteString(pageHead)
	for _, e := range engine.Table() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", e.Name, words(e.Also), e.Starts, orDash(e.Uses), words(e.Options))
	}
	b.WriteString(pageMiddle)
	b.WriteString("| engine | version |")
	for _, s := range Shapes {
		fmt.Fprintf(&b, " %s |", s)
	}
	b.WriteString(" one rank killed |\n|---|---|" + strings.Repeat("---|", len(Shapes)+1) + "\n")
	var notes []string
	for _, t := range Trials {
		if t.Absent != "" {
			notes = append(notes, fmt.Sprintf("- `%s` did not run: %s.", t.Engine, t.Absent))
			notes = append(notes, r.ways(t.Engine)...)
			continue
		}
		found := r[t.Engine]
		if found == nil {
			notes = append(notes, fmt.Sprintf("- `%s` was not tried yet.", t.Engine))
			continue
		}
		fmt.Fprintf(&b, "| `%s` | %s |", t.Engine, orDash(found.Version))
		for _, s := range Shapes {
			fmt.Fprintf(&b, " %s |", orDash(found.Cells[s.String()]))
		}
		fmt.Fprintf(&b, " %s |\n", orDash(found.Killed))
		notes = append(notes, r.ways(t.Engine)...)
	}
	if len(notes) > 0 {
		b.WriteString("\n" + strings.Join(notes, "\n") + "\n")
	}
	text, _ := scripts.ReadFile("scripts/about.md")
	b.Write(text)
	return b.String()
}

// ways are the notes of what an engine has keys of its own for.
func (r Results) ways(engine string) (notes []string) {
	if found := r[engine]; found != nil {
		for _, way := range slices.Sorted(maps.Keys(found.Ways)) {
			notes = append(notes, fmt.Sprintf("- `%s` with `%s`: %s.", engine, way, found.Ways[way]))
		}
	}
	return notes
}

func words(list []string) string {
	if len(list) == 0 {
		return "–"
	}
	quoted := slices.Clone(list)
	for i, w := range quoted {
		quoted[i] = "`" + w + "`"
	}
	return strings.Join(quoted, ", ")
}

func orDash(text string) string {
	if text == "" {
		return "–"
	}
	return text
}
