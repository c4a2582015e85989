// Package home is the list of what exists: clusters, profiles, runs; filtered,
// picked and drawn.
package home

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/ui/sign"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/event"
)

// List is the list of what exists.
type List struct {
	all    event.Home
	read   bool
	fault  string // why it could not be read
	filter string
	picked int
	here   string // the profile of the present directory
}

// Page is the list as it is drawn.
type Page struct {
	text.Look
	*List
}

// New is a list that nothing is known of; here is the profile of the present
// directory, empty when it has none.
func New(here string) List { return List{here: here} }

// Filter are the words of the filter; empty when there is none.
func (h *List) Filter() string { return h.filter }

// SetFilter shows what has all of some words.
func (h *List) SetFilter(words string) { h.filter, h.picked = words, 0 }

// Back takes back what esc takes back here: the filter. What is picked stays.
func (h *List) Back() bool {
	filtered := h.filter != ""
	h.filter = ""
	return filtered
}

// Clusters are all that there are, filtered or not.
func (h *List) Clusters() []event.ClusterInfo { return h.all.Clusters }

// Unread reports whether what exists was not read yet.
func (h *List) Unread() bool { return !h.read }

// Item is one row of the list; exactly one of the three is set.
type Item struct {
	Cluster *event.ClusterInfo
	Profile *event.ProfileInfo
	Run     *event.RunInfo
}

// Set takes what exists, or why that could not be found out.
func (h *List) Set(all event.Home, err error) {
	h.read = true
	if err != nil {
		h.fault = text.Word(err.Error())
		return
	}
	h.fault, h.all = "", all
	h.addHere()
	h.picked = text.Clamp(h.picked, 0, max(len(h.items())-1, 0))
}

// addHere puts the profile of the present directory first, known or not: who
// starts dlwb in the directory of an experiment means that one.
func (h *List) addHere() {
	if h.here == "" {
		return
	}
	p := event.ProfileInfo{Name: filepath.Base(filepath.Dir(h.here)), Path: h.here}
	rest := make([]event.ProfileInfo, 0, len(h.all.Profiles)+1)
	for _, q := range h.all.Profiles {
		if q.Path == h.here {
			p = q
		} else {
			rest = append(rest, q)
		}
	}
	h.all.Profiles = append([]event.ProfileInfo{p}, rest...)
}

// items lists what matches the filter: clusters, profiles, runs.
func (h *List) items() []Item {
	var out []Item
	want := strings.Fields(strings.ToLower(h.filter))
	add := func(it Item, said string) {
		if text.HasAll(strings.ToLower(said), want) {
			out = append(out, it)
		}
	}
	for i := range h.all.Clusters {
		c := &h.all.Clusters[i]
		add(Item{Cluster: c}, c.Name+" "+c.Provider+" "+string(c.Phase)+" "+c.Profile+" "+c.Instance+" "+c.Region)
	}
	for i := range h.all.Profiles {
		p := &h.all.Profiles[i]
		add(Item{Profile: p}, p.Name+" "+p.Provider+" "+p.Path)
	}
	for i := range h.all.Runs {
		r := &h.all.Runs[i]
		add(Item{Run: r}, r.ID+" "+r.Profile+" "+string(r.Verdict)+" "+r.Cluster)
	}
	return out
}

// Move moves the cursor by rows.
func (h *List) Move(d int) { h.picked = text.Clamp(h.picked+d, 0, max(len(h.items())-1, 0)) }

// Pick is what the cursor is on; nothing is set in it where there is nothing.
func (h *List) Pick() Item {
	if items := h.items(); h.picked < len(items) {
		return items[h.picked]
	}
	return Item{}
}

// Cluster is the cluster that the cursor is on; nil where it is on something else.
func (h *List) Cluster() *event.ClusterInfo { return h.Pick().Cluster }

// Path is that of the profile that the cursor is on, or its cluster came from.
func (h *List) Path() string {
	switch it := h.Pick(); {
	case it.Profile != nil:
		return it.Profile.Path
	case it.Cluster != nil:
		return it.Cluster.ProfilePath
	}
	return ""
}

// Text is what is copied of what is picked: a path, a name, a directory.
func (h *List) Text() string {
	switch it := h.Pick(); {
	case it.Profile != nil:
		return text.Word(it.Profile.Path)
	case it.Cluster != nil:
		return text.Word(it.Cluster.Name)
	case it.Run != nil:
		return text.Word(it.Run.Dir)
	}
	return ""
}

// ClusterOf is where a run goes on; nil for one that is over.
func (h *List) ClusterOf(r *event.RunInfo) *event.ClusterInfo {
	if r.EndedAt != nil {
		return nil
	}
	for i := range h.all.Clusters {
		if c := &h.all.Clusters[i]; c.Run == r.ID {
			return c
		}
	}
	return nil
}

// filterSign says that a filter is on, and how much it leaves.
func (p Page) filterSign() string {
	h := p.List
	if h.filter == "" {
		return ""
	}
	all := len(h.all.Clusters) + len(h.all.Profiles) + len(h.all.Runs)
	return "  " + p.Styles.Warn.Of("/"+text.Word(h.filter)) + p.Styles.Dim.Of(fmt.Sprintf("  %d of %d, esc shows all", len(h.items()), all))
}

// row is a line of the home screen and the item it stands for; -1 for none.
type row struct {
	text string
	item int
}

// widest keeps a row together: an eye loses a line that is much longer.
const widest = 140

// rows draws the whole list; the same rows answer where a click went.
func (p Page) rows(w int) []row {
	h, s := p.List, p.Styles
	w = min(w, widest)
	var rows []row
	say := func(text string) { rows = append(rows, row{text, -1}) }
	if h.fault != "" {
		say(s.Bad.Of("✗ what exists could not be read: ") + h.fault)
		say("")
	}
	items := h.items()
	section := ""
	for i, it := range items {
		if sec := it.section(); sec != section {
			if section != "" {
				say("")
			}
			section = sec
			say(s.Dim.Of(sec))
		}
		rows = append(rows, row{p.itemRow(it, i == h.picked, w), i})
	}
	if len(items) == 0 {
		for _, l := range p.empty(w) {
			say(l)
		}
	}
	return rows
}

func (it Item) section() string {
	switch {
	case it.Cluster != nil:
		return "clusters"
	case it.Profile != nil:
		return "profiles"
	}
	return "runs"
}

// empty says what to do when there is nothing to show.
func (p Page) empty(w int) []string {
	s := p.Styles
	switch {
	case !p.List.read:
		return []string{s.Dim.Of(p.Spinner() + " looking at what exists")}
	case p.List.filter != "":
		return []string{"Nothing matches " + s.Strong.Of(p.List.filter) + ".", "", s.Key.Of("esc") + "  shows everything again"}
	}
	out := []string{s.Strong.Of("Nothing here yet."), ""}
	out = append(out, text.Wrap("A profile is one file that describes one experiment. In the directory of your training script:", min(w, 72))...)
	return append(out, "",
		"  "+s.Key.Of("N")+"           makes one here, step by step: machines, price, plan",
		"  "+s.Key.Of("dlwb init")+"   writes a profile for it",
		"  "+s.Key.Of("dlwb")+"        comes back here, where it can be started",
		"",
		"or watch one run first:", "",
		"  "+s.Key.Of("dlwb demo")+"   trains a small language model on two nodes of this machine")
}

// nameWidth is one width for the names of all rows.
func (h *List) nameWidth(w int) int {
	n := 12
	for _, it := range h.items() {
		switch {
		case it.Cluster != nil:
			n = max(n, len(it.Cluster.Name))
		case it.Profile != nil:
			n = max(n, len(it.Profile.Name))
		case it.Run != nil:
			n = max(n, len(it.Run.ID))
		}
	}
	return min(n, w/4+4)
}

func (p Page) itemRow(it Item, picked bool, w int) string {
	mark, name := "  ", func(t string) string { return t }
	if picked {
		mark, name = p.Styles.Picked.Of("› "), p.Styles.Picked.Of
	}
	nameW := p.List.nameWidth(w)
	var body string
	switch {
	case it.Cluster != nil:
		body = name(text.Fit(text.Word(it.Cluster.Name), nameW)) + "   " + p.clusterCells(it.Cluster, w-nameW-5)
	case it.Profile != nil:
		body = name(text.Fit(text.Word(it.Profile.Name), nameW)) + "   " + p.profileCells(it.Profile, w-nameW-5)
	case it.Run != nil:
		body = name(text.Fit(text.Word(it.Run.ID), nameW)) + "   " + p.runCells(it.Run, w-nameW-5)
	}
	return text.Cut(mark+body, w)
}

func (p Page) profileCells(f *event.ProfileInfo, w int) string {
	if f.Fault != "" {
		return p.Styles.Bad.Of("✗ ") + text.Cut(text.Word(f.Fault), w-2)
	}
	used := "not used yet"
	if f.Provider == "" { // it was not read so far
		return text.Spread(p.Styles.Dim.Of("in this directory; enter shows its plan"), p.Styles.Dim.Of(used), w)
	}
	if !f.UsedAt.IsZero() {
		used = "used " + units.Ago(p.Now, f.UsedAt)
	}
	return text.Spread(text.Fit(text.Word(f.Provider), 12)+"  "+p.Styles.Dim.Of(text.Word(f.Path)), p.Styles.Dim.Of(used), w)
}

func (p Page) runCells(r *event.RunInfo, w int) string {
	loss := ""
	if r.LastLoss != nil {
		loss = "loss " + text.Number(*r.LastLoss)
	}
	took := ""
	if r.EndedAt != nil {
		took = units.Duration(r.Took(p.Now))
	}
	left := text.Fit(sign.Verdict(p.Look, r.Verdict, r.ExitCode), 14) + text.Fit(loss, 14) + took
	return text.Spread(left, p.Styles.Dim.Of(units.Ago(p.Now, r.StartedAt)), w)
}

// Draw shows the part of the list around what is picked.
func (p Page) Draw(w, h int) []string {
	rows := p.rows(w)
	out := []string{}
	for _, r := range rows[p.top(rows, h):] {
		out = append(out, r.text)
	}
	return out
}

// top is the first row to show: with all of the list before what is
// picked if that fits, heading included.
func (p Page) top(rows []row, h int) int {
	for y, r := range rows {
		if r.item == p.List.picked {
			if y < h {
				return 0
			}
			return text.Clamp(y-h/2, 0, max(len(rows)-h, 0))
		}
	}
	return 0
}

// Click picks the row at a y of the body; again is true when it was picked
// already.
func (p Page) Click(y, w, h int) (again bool) {
	i, ok := p.rowAt(y, w, h)
	if !ok {
		return false
	}
	again = i == p.picked
	p.picked = i
	return again
}

// rowAt says which item lies on a row of the body.
func (p Page) rowAt(y, w, h int) (int, bool) {
	rows := p.rows(w)
	i := y + p.top(rows, h)
	if y < 0 || i < 0 || i >= len(rows) || rows[i].item < 0 {
		return 0, false
	}
	return rows[i].item, true
}
