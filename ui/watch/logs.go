package watch

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/text"
)

// Logs is the output of one rank over the whole screen.
func (p Page) Logs(w, h int) []string {
	out := []string{p.rankBar(w), ""}
	return append(out, p.logRows(w, h-2)...)
}

// rankBar shows whose output this is, and who else there is.
func (p Page) rankBar(w int) string {
	s := p.Of
	ranks := s.State.Ranks()
	left, wide := p.Styles.Dim.Of("rank "), len("rank ")
	for _, r := range ranks {
		name := " " + p.rankSign(r) + " "
		if wide += text.Wide(name); wide > w/2 { // thousands of ranks are not set to be thrown away
			left = p.Styles.Dim.Of("rank ") + p.Styles.Cursor.Of(" "+session.RankName(s.Rank)+" ") +
				p.Styles.Dim.Of(fmt.Sprintf(" of %d; tab next, 0–9 picks", len(ranks)))
			break
		}
		if r == s.Rank {
			left += p.Styles.Cursor.Of(name)
		} else {
			left += p.Styles.Dim.Of(name)
		}
	}
	return text.Spread(left, p.logState(), w)
}

// rankSign names a rank in the bar, and says whether it failed.
func (p Page) rankSign(r int) string {
	name := strconv.Itoa(r)
	if r < 0 {
		name = "launcher " + strconv.Itoa(-1-r)
	}
	if e, ok := p.Of.State.RankEnds[r]; ok && e.ExitCode != 0 && !e.ByUs {
		name += "✗"
	}
	return name
}

// logState says how the log is looked at.
func (p Page) logState() string {
	v := p.Of.View
	var parts []string
	if q := v.Query(); q != "" {
		n, total, all := v.Matches()
		text := fmt.Sprintf("%q %s of %s", q, text.Count(int64(n)), text.Count(int64(total)))
		if !all {
			text += "+"
		}
		if total == 0 && all {
			text = fmt.Sprintf("%q is not in it", q)
		}
		parts = append(parts, p.Styles.Warn.Of(text))
	}
	if v.Wrap() {
		parts = append(parts, "wrapped")
	}
	if v.Follow {
		parts = append(parts, p.Styles.Good.Of("▼ following"))
	} else {
		parts = append(parts, p.Styles.Warn.Of("held"))
	}
	parts = append(parts, p.Styles.Dim.Of(text.Plural(v.Log.Lines(), "line")))
	return strings.Join(parts, "  ")
}

// logRows draws the shown rank's output, or says why there is none yet.
func (p Page) logRows(w, h int) []string {
	s := p.Of
	if h <= 0 || w <= 0 {
		return nil
	}
	if s.Output(s.Rank).Off == 0 {
		began := s.State.StartedAt
		if began.IsZero() {
			began = s.Asked
		}
		text := "nothing was printed yet, for " + text.Since(p.Now, began)
		if s.Past || s.State.Ended != nil {
			text = "it printed nothing"
		}
		return []string{p.Styles.Dim.Of(text)}
	}
	return strings.Split(s.View.Draw(w, h, p.Styles.Log), "\n")
}
