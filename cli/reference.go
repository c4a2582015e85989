package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dlwb/dlwb/cli/imports"
	"github.com/dlwb/dlwb/cli/keeping"
	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/workbench/cleanup"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/history"
	"github.com/dlwb/dlwb/workbench/planning"
	"github.com/dlwb/dlwb/workbench/trust"
)

//go:generate sh -c "go run .. help commands > ../docs/commands.md"
//go:generate sh -c "go run .. help keys > ../docs/keys.md"
//go:generate sh -c "go run .. help settings > ../docs/settings.md"

// What commands answer with --json, where no other package has a type for it.
type (
	clustersAnswer struct {
		Clusters []event.ClusterInfo `json:"clusters"`
	}
	// pastAnswer is what attach answers for a run that is over.
	pastAnswer struct {
		Run     event.RunInfo    `json:"run"`
		Results event.RunResults `json:"results"`
	}
	noteAnswer struct {
		Run     string `json:"run"`
		Note    string `json:"note"`
		Starred bool   `json:"starred"`
	}
	exportAnswer struct {
		Run    string `json:"run"`
		Format string `json:"format"`
		File   string `json:"file"`
		Bytes  int64  `json:"bytes"`
	}
	rerunAnswer struct {
		Run      string         `json:"run"`
		Differs  []string       `json:"differs"`
		Checkout bool           `json:"checkout"` // the code of then is used
		Plan     *planning.Plan `json:"plan"`
	}
	initAnswer struct {
		Path    string   `json:"path"`
		Profile string   `json:"profile"`
		Notes   []string `json:"notes"`
	}
	stopAnswer struct {
		Run   string         `json:"run"`
		Ended event.RunEnded `json:"ended"`
		// EndedBefore is when it had ended, where that was before it was to be stopped.
		EndedBefore *time.Time `json:"ended_before,omitempty"`
	}
	doctorAnswer struct {
		Findings []cloud.Finding `json:"findings"`
		OK       bool            `json:"ok"`
	}
	eventsAnswer struct {
		Events    []eventDoc `json:"events"`
		ExitCodes []exitDoc  `json:"exit_codes"`
	}
)

// outputs says what every command prints with --json: one object of a type, a
// stream of events, or nothing, and then why.
var outputs = map[string]struct {
	answer any
	stream string
	none   string
	unless []string // flags with which it prints one object all the same
}{
	"dlwb":       {answer: clustersAnswer{}},
	"demo":       {stream: "everything that happens, from `plan` to `receipt`; of the output, that of rank 0"},
	"init":       {answer: initAnswer{}},
	"plan":       {answer: planning.Plan{}},
	"trust":      {answer: trust.Subject{}},
	"up":         {stream: "the steps `cluster` and `environment`"},
	"run":        {stream: "everything that happens, from `plan` on; of the output, that of rank 0"},
	"sweep":      {stream: "the steps, `sweep` with the leaderboard at each change, and how each trial began and ended; with `--show` one object, the leaderboard", unless: []string{"show"}},
	"chain":      {stream: "`chain` for each step, and between them what `run` prints"},
	"logs":       {stream: "only `log_line`"},
	"ls":         {answer: clustersAnswer{}},
	"runs":       {answer: history.Table{}},
	"note":       {answer: noteAnswer{}},
	"star":       {answer: noteAnswer{}},
	"compare":    {answer: history.Comparison{}},
	"export":     {answer: exportAnswer{}},
	"rm":         {answer: rmAnswer{}},
	"compact":    {answer: cleanup.Compacted{}},
	"keeper":     {answer: keeping.Answer{}},
	"runbook":    {answer: history.Recipe{}},
	"rerun":      {stream: "everything that happens, from `plan` on, after a `notice` for each thing that differs; with `--plan` one object with `differs` and `plan`"},
	"attach":     {stream: "everything that happened since the cluster came up, then what comes; of the output, that of rank 0; for a run that is over one object with `run` and `results`"},
	"ssh":        {none: "it gives the terminal to a node; dlwb exec answers in JSON", unless: []string{"config", "include"}},
	"exec":       {answer: execResult{}},
	"sync":       {stream: "the steps up to `sync`; with `--watch` then `step_ended` for each sync that did something; with `--dry-run` one object with what would be done on each node"},
	"forward":    {stream: "`forward_opened` for each, then `forward` whenever it is known how one stands"},
	"pull":       {answer: event.ResultsFetched{}},
	"stop":       {answer: stopAnswer{}},
	"down":       {stream: "the step `down`, with `receipt`, for each cluster"},
	"import":     {answer: imports.Answer{}},
	"doctor":     {answer: doctorAnswer{}},
	"offers":     {answer: offersAnswer{}},
	"start":      {stream: "the step `cluster`, then `cluster_up`"},
	"extend":     {stream: "`cluster_up` with the new end of the lease"},
	"gc":         {answer: gcAnswer{}},
	"metrics":    {answer: metricsAnswer{}},
	"events":     {answer: eventsAnswer{}},
	"help":       {answer: helpAnswer{}},
	"completion": {none: "it prints a script for a shell"},
}

// textOnly says why a command has no --json; empty when it has.
func textOnly(c *cobra.Command) string {
	for c.HasParent() && c.Parent().HasParent() {
		c = c.Parent() // completion bash is completion
	}
	out := outputs[c.Name()]
	if slices.ContainsFunc(out.unless, c.Flags().Changed) {
		return ""
	}
	return out.none
}

const commandsHead = `<!-- Made from the commands themselves by "dlwb help commands". -->
# Commands

Text and JSON are made of the same values. With ` + "`--json`" + ` every line of standard output is one JSON
object: the answer of a command, or one event of those in [events.md](events.md), each with ` + "`event`" + `.
An answer has no ` + "`event`" + `: in front of it the event ` + "`waiting`" + ` may come, when something takes long.
What can't be done is one more object, the event ` + "`error`" + `. Standard error has no JSON. A list without
entries is ` + "`[]`" + `; a number that is none is ` + "`\"nan\"`, `\"inf\"` or `\"-inf\"`" + `. Fields may be added; those
that are here stay. Characters that a terminal does not show (controls, direction overrides, invisible ones)
are written as ` + "`\\u`" + ` and four digits: the values are the same.

PROFILE is a file, a directory with a dlwb.yaml in it, a cluster's name or the id of a run on it for theirs,
or nothing for the present directory. RUN is the id of a run, the beginning of one, a cluster's name or the
path of a profile for its newest run, or nothing for the newest of all. CLUSTER is its name, the id of a run
on it, the path of its profile, or nothing when there is only one. What is a name is tried as a name first.

Flags of every command: ` + "`--json`; `--plain`" + ` prints lines instead of opening the screen (as it is without
a terminal, and where TERM is dumb or not set); ` + "`--help`" + `.
`

// CommandReference is the page docs/commands.md, made from the commands.
func CommandReference() string {
	var b strings.Builder
	b.WriteString(commandsHead)
	root := (&app{}).root()
	commandEntry(&b, root)
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			commandEntry(&b, c)
		}
	}
	return b.String()
}

func commandEntry(b *strings.Builder, c *cobra.Command) {
	text := textOf(c)
	if !c.HasParent() {
		text = "Opens the screen; without a terminal it lists the clusters, as `dlwb ls` does."
	}
	if text == c.Short {
		text = strings.ToUpper(text[:1]) + text[1:] + "."
	}
	fmt.Fprintf(b, "\n## `%s`\n\n%s\n", c.UseLine(), text)
	if rows := flagRows(c); rows != "" {
		b.WriteString("\n| flag | default | |\n|---|---|---|\n" + rows)
	}
	out := outputs[c.Name()]
	switch {
	case out.answer != nil:
		fmt.Fprintf(b, "\nWith `--json` one object%s:\n\n| field | type |\n|---|---|\n", map[bool]string{true: " a node"}[c.Name() == "exec"])
		for _, f := range event.Fields(out.answer) {
			fmt.Fprintf(b, "| `%s` | %s |\n", f[0], f[1])
		}
	case out.stream != "":
		fmt.Fprintf(b, "\nWith `--json` events: %s.\n", out.stream)
	default:
		fmt.Fprintf(b, "\nIt has no `--json`: %s.", out.none)
		if len(out.unless) > 0 {
			fmt.Fprintf(b, " With `--%s` it prints one object.", strings.Join(out.unless, "` or `--"))
		}
		b.WriteString("\n")
	}
}

// flagRows are a command's own flags as rows of a table.
func flagRows(c *cobra.Command) string {
	var b strings.Builder
	for _, f := range flagsOf(c) {
		if c.Root().PersistentFlags().Lookup(f.Name) != nil {
			continue
		}
		name := "`--" + f.Name + "`"
		if f.Short != "" {
			name += ", `-" + f.Short + "`"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name, f.Default, f.Text)
	}
	return b.String()
}
