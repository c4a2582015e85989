package history

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/metrics/goal"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/remote/engine"
	"github.com/dlwb/dlwb/workbench/event"
)

// Comparison is what differs between runs, and what they came to.
type Comparison struct {
	Runs []ComparedRun `json:"runs"`
	// Differences are the facts that are not the same in all of them.
	Differences []Difference     `json:"differences"`
	Metrics     []ComparedMetric `json:"metrics"`
	// Notes say what could not be compared.
	Notes []string `json:"notes"`
}

// ComparedRun is one of the runs that are compared.
type ComparedRun struct {
	ID       string        `json:"id"`
	Verdict  event.Verdict `json:"verdict,omitempty"`
	Started  time.Time     `json:"started_at"`
	Duration float64       `json:"duration_s"`
	Cost     float64       `json:"cost"` // US dollars
	Note     string        `json:"note,omitempty"`
	Starred  bool          `json:"starred,omitempty"`
}

// Difference is one fact with its value in each run, in their order; empty
// where a run does not have it.
type Difference struct {
	Group  string   `json:"group"` // profile, argument, code, package, machine
	Key    string   `json:"key"`
	Values []string `json:"values"`
}

// ComparedMetric is one series with what it came to in each run; null where a
// run does not have it.
type ComparedMetric struct {
	Name string           `json:"name"`
	Goal goal.Goal        `json:"goal"` // "min", "max"; empty: no way is better
	Last []*metrics.Point `json:"last"`
	Best []*metrics.Point `json:"best"`
	// Winner is the place of the run with the best value; -1: none, or all are as good.
	Winner int `json:"winner"`
}

// Compare says what differs between runs: keys of the profile, arguments of the
// command, code, packages, machines, and of each series the last and best value.
func (h *History) Compare(ids []string) (Comparison, error) {
	c := Comparison{Differences: []Difference{}, Metrics: []ComparedMetric{}, Notes: []string{}}
	table := factTable{runs: len(ids), at: map[[2]string]int{}}
	series := map[string]int{}
	var codeless []string
	for i, id := range ids {
		r, err := h.records.Run(id)
		if err != nil {
			return c, err
		}
		c.Runs = append(c.Runs, ComparedRun{ID: id, Verdict: r.Verdict, Started: r.StartedAt,
			Duration: r.Duration, Cost: r.Cost, Note: r.Note, Starred: r.Starred})
		recipe, err := h.Recipe(id)
		if err != nil {
			return c, err
		}
		if !recipe.Complete {
			c.Notes = append(c.Notes, "packages and machines of "+id+" are not known")
		}
		if recipe.Git == nil {
			codeless = append(codeless, id)
		}
		recipe.facts(func(group, key, value string) { table.put(i, group, key, value) }, r.WorldSize)
		infos, err := h.Series(id)
		if err != nil {
			return c, err
		}
		for _, s := range infos {
			at, ok := series[s.Name]
			if !ok {
				at = len(c.Metrics)
				series[s.Name] = at
				c.Metrics = append(c.Metrics, ComparedMetric{Name: s.Name, Goal: s.Goal, Winner: -1,
					Last: make([]*metrics.Point, len(ids)), Best: make([]*metrics.Point, len(ids))})
			}
			c.Metrics[at].Last[i], c.Metrics[at].Best[i] = &s.Last, s.Best
		}
	}
	for i := range c.Metrics {
		c.Metrics[i].judge()
	}
	if len(codeless) > 0 {
		c.Notes = append(c.Notes, "whether the code is the same can't be told: of "+strings.Join(codeless, ", ")+" no git repository is on record")
	}
	c.Differences = append(c.Differences, table.differences()...)
	return c, nil
}

// judge finds the run with the best value; none where they are the same.
func (m *ComparedMetric) judge() {
	same := true
	for i, p := range m.Best {
		if p == nil {
			continue
		}
		switch {
		case m.Winner < 0:
			m.Winner = i
		case m.Goal.Better(p.Value, m.Best[m.Winner].Value):
			m.Winner, same = i, false
		case p.Value != m.Best[m.Winner].Value:
			same = false
		}
	}
	if same {
		m.Winner = -1
	}
}

// factTable is facts of several runs, in the order in which they came.
type factTable struct {
	runs int
	rows []Difference
	at   map[[2]string]int
}

func (t *factTable) put(run int, group, key, value string) {
	i, ok := t.at[[2]string{group, key}]
	if !ok {
		i = len(t.rows)
		t.at[[2]string{group, key}] = i
		t.rows = append(t.rows, Difference{group, key, make([]string, t.runs)})
	}
	t.rows[i].Values[run] = value
}

// groups are those of facts, in the order in which they matter.
var groups = []string{"profile", "argument", "code", "package", "machine"}

func (t *factTable) differences() []Difference {
	differ := slices.DeleteFunc(t.rows, func(d Difference) bool {
		return !slices.ContainsFunc(d.Values, func(v string) bool { return v != d.Values[0] })
	})
	slices.SortStableFunc(differ, func(a, b Difference) int { return slices.Index(groups, a.Group) - slices.Index(groups, b.Group) })
	return differ
}

// facts tells what of a recipe can be compared.
func (r Recipe) facts(put func(group, key, value string), worldSize int) {
	for _, kv := range profiles.Flatten(r.Profile) {
		if kv[0] != "run.command" { // its arguments are told one by one
			put("profile", kv[0], kv[1])
		}
	}
	for _, kv := range commandArguments(r.Command) {
		put("argument", kv[0], kv[1])
	}
	if g := r.Git; g != nil {
		put("code", "commit", g.Short())
		put("code", "uncommitted", g.diffText())
	}
	if r.Complete {
		for _, p := range r.Packages {
			name, version := packageParts(p)
			put("package", name, version)
		}
	}
	put("package", "python", strings.SplitN(r.Python+" ", " ", 2)[0])
	put("package", "CUDA of PyTorch", r.CUDA)
	put("machine", "engine", r.Engine)
	put("machine", "world size", fmt.Sprint(worldSize))
	put("machine", "provider", r.Provider)
	put("machine", "region", r.Region)
	put("machine", "instance", r.Instance)
	put("machine", "image", r.Image)
	put("machine", "spot", fmt.Sprint(r.Spot))
	if len(r.Machines) > 0 {
		m := r.Machines[0]
		put("machine", "GPUs", strings.Join(m.GPUs, ", "))
		put("machine", "driver", m.Driver)
		put("machine", "system", m.System)
		put("machine", "nodes", fmt.Sprint(len(r.Machines)))
	}
}

// Short is the beginning of the commit, as people name it.
func (g *GitState) Short() string { return g.Commit[:min(len(g.Commit), 12)] }

// diffText tells a diff in a few words.
func (g *GitState) diffText() string {
	if !g.Dirty {
		return ""
	}
	files, added, removed := 0, 0, 0
	for line := range strings.Lines(g.Diff) {
		switch {
		case strings.HasPrefix(line, "diff --git "):
			files++
		case strings.HasPrefix(line, "+++ ") || strings.HasPrefix(line, "--- "):
		case line[0] == '+':
			added++
		case line[0] == '-':
			removed++
		}
	}
	return fmt.Sprintf("%s, +%d −%d (%s)", units.Count(files, "file"), added, removed, g.DiffHash)
}

// commandArguments takes a command apart: --key value, --key=value, key=value
// (Hydra), and words by their place.
func commandArguments(command string) [][2]string {
	words, err := engine.Split(command)
	if err != nil {
		return [][2]string{{"command", command}}
	}
	var all [][2]string
	place := 0
	for i := 0; i < len(words); i++ {
		word := words[i]
		key, value, has := strings.Cut(word, "=")
		switch {
		case has && (strings.HasPrefix(word, "-") || place > 0):
			all = append(all, [2]string{key, value})
		case strings.HasPrefix(word, "-") && len(word) > 1 && !isNumber(word):
			var values []string
			for i+1 < len(words) && !strings.Contains(words[i+1], "=") && (!strings.HasPrefix(words[i+1], "-") || isNumber(words[i+1])) {
				i++
				values = append(values, words[i])
			}
			if len(values) == 0 {
				values = []string{"yes"}
			}
			all = append(all, [2]string{word, strings.Join(values, " ")})
		default:
			all = append(all, [2]string{fmt.Sprintf("word %d", place), word})
			place++
		}
	}
	return all
}

func isNumber(word string) bool {
	rest := strings.TrimLeft(word, "-+")
	return rest != "" && (rest[0] >= '0' && rest[0] <= '9' || rest[0] == '.')
}
