package history

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/remote/transfer"
	"github.com/dlwb/dlwb/sanitize"
)

// Runbook writes a run for a reader, in Markdown: what was run, how and with
// what, what it cost and came to, and how to do it again by hand.
func (h *History) Runbook(run string) (string, error) {
	r, err := h.records.Run(run)
	if err != nil {
		return "", err
	}
	recipe, err := h.Recipe(run)
	if err != nil {
		return "", err
	}
	series, err := h.Series(run)
	if err != nil {
		return "", err
	}
	b := &book{}
	b.line("# Run %s", run)
	b.summary(r, recipe)
	b.results(series)
	b.files(h.records.Placed(run))
	b.how(recipe)
	b.withWhat(recipe)
	b.byHand(run, recipe)
	return b.String(), nil
}

// book is a page that is being written.
type book struct{ strings.Builder }

func (b *book) line(format string, args ...any) { fmt.Fprintf(b, format+"\n", args...) }

// fact writes a row of a list, unless there is nothing to say.
func (b *book) fact(name, value string) {
	if value != "" {
		b.line("- **%s**: %s", name, plain(value))
	}
}

// plain makes a text a part of a line of Markdown: it comes from a node, perhaps.
func plain(s string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "`", "'", "*", `\*`, "[", `\[`).Replace(sanitize.Word(strings.Join(strings.Fields(s), " ")))
}

// code writes a block of code, fenced so that nothing in it ends it: nor what it
// is once it is safe to be shown, which may be shorter.
func (b *book) code(kind, text string) {
	text = strings.TrimRight(sanitize.Plain(text), "\n")
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	b.line("%s%s\n%s\n%s", fence, kind, text, fence)
}

func (b *book) summary(info Run, r Recipe) {
	b.line("")
	if info.Note != "" {
		b.line("> %s\n", plain(info.Note))
	}
	verdict := "is running"
	if info.EndedAt != nil {
		verdict = string(info.Verdict) + ": " + info.Cause
	}
	b.fact("What", info.Command+" (profile "+info.Profile+")")
	b.fact("Came to", verdict)
	b.fact("Began", info.StartedAt.Local().Format("2006-01-02 15:04:05 MST"))
	b.fact("Took", units.Seconds(info.Duration))
	b.fact("Cost", units.USD(info.Cost)+", at "+units.PerHour(info.PricePerHour)+" for the machines")
	b.fact("Ranks", fmt.Sprintf("%d on %s, engine %s", info.WorldSize, units.Count(info.Nodes, "node"), info.Engine))
	b.fact("Again", "dlwb rerun "+info.ID+" --checkout")
	b.fact("A rerun of", r.RerunOf)
	b.fact("Logs", info.Dir)
	for _, n := range r.Notes {
		b.fact("Note", n)
	}
}

func (b *book) results(series []SeriesInfo) {
	b.line("\n## Results\n")
	if len(series) == 0 {
		b.line("The run told no series.")
		return
	}
	b.line("| series | points | first | last | best | at | from |\n|---|---|---|---|---|---|---|")
	for _, s := range series {
		best, at := "–", ""
		if p := s.Best; p != nil {
			best = fmt.Sprintf("%.5g (%s)", p.Value, s.Goal)
			switch {
			case p.Step != nil:
				at = fmt.Sprintf("step %d", *p.Step)
			case p.Epoch != nil:
				at = fmt.Sprintf("epoch %v", *p.Epoch)
			}
		}
		b.line("| %s | %d | %.5g | %.5g | %s | %s | %s |", plain(s.Name), s.Count, s.First.Value, s.Last.Value, best, at, plain(s.Shown))
	}
}

// mostBookFiles bounds the list of the files that came home.
const mostBookFiles = 200

// files lists what the run wrote and what came home of it.
func (b *book) files(home map[string]map[string]transfer.Placed) {
	for _, dir := range slices.Sorted(maps.Keys(home)) {
		placed := home[dir]
		b.line("\nFiles of the run in `%s`:\n\n| file | size |\n|---|---|", plain(dir))
		names := slices.Sorted(maps.Keys(placed))
		for _, name := range names[:min(len(names), mostBookFiles)] {
			p := placed[name]
			b.line("| %s | %s |", plain(p.As), units.Bytes(p.Size))
		}
		if more := len(names) - mostBookFiles; more > 0 {
			b.line("| and %d more | |", more)
		}
	}
}

func (b *book) how(r Recipe) {
	b.line("\n## How\n\nThe profile:\n")
	b.code("yaml", r.Profile)
	if r.Git == nil {
		b.line("\nThe code was in no git repository.")
		return
	}
	g := r.Git
	b.line("")
	b.fact("Commit", g.Commit)
	b.fact("Branch", g.Branch)
	b.fact("Repository", g.Remote)
	b.fact("Directory", g.Prefix)
	if !g.Dirty {
		b.fact("Not committed", "nothing")
		return
	}
	b.fact("Not committed", g.diffText())
	if g.Diff != "" {
		b.line("\n`uncommitted.diff`:\n")
		b.code("diff", g.Diff)
	}
}

func (b *book) withWhat(r Recipe) {
	b.line("\n## With what\n")
	b.fact("Python", r.Python)
	b.fact("PyTorch", strings.TrimSpace(r.Torch+" "+ifSet("for CUDA ", r.CUDA)))
	b.fact("Environment", r.Environment)
	b.fact("Provider", strings.Join(nonEmpty(r.Provider, r.Instance, r.Zone, map[bool]string{true: "spot"}[r.Spot]), ", "))
	b.fact("Image", r.Image)
	for _, c := range r.Costs {
		b.fact("Price", fmt.Sprintf("%s: %s (%s)", c.What, units.PerHour(c.PerHour), c.Source))
	}
	if len(r.Machines) > 0 {
		b.line("\n| node | host | system | kernel | cores | memory | GPUs | driver |\n|---|---|---|---|---|---|---|---|")
	}
	for _, m := range r.Machines {
		b.line("| %d | %s | %s | %s | %d | %s | %s | %s |", m.Node, plain(m.Host), plain(m.System), plain(m.Kernel), m.Cores, units.Binary(m.Memory), plain(strings.Join(m.GPUs, ", ")), plain(m.Driver+ifSet(", CUDA ", m.CUDA)))
	}
	if len(r.Packages) > 0 {
		b.line("\n`requirements.lock`, of node 0:\n")
		b.code("", strings.Join(r.Packages, "\n"))
	}
}

func ifSet(before, s string) string {
	if s == "" {
		return ""
	}
	return before + s
}

func nonEmpty(words ...string) []string {
	var kept []string
	for _, w := range words {
		if w != "" {
			kept = append(kept, w)
		}
	}
	return kept
}

func (b *book) byHand(run string, r Recipe) {
	b.line("\n## By hand\n\n`dlwb rerun %s --checkout` does this. Without dlwb, with the files above:\n", run)
	b.code("sh", strings.Join(r.CommandsByHand(), "\n"))
}
