package metrics

import "github.com/dlwb/dlwb/metrics/label"

// The ranks of lines that do not say which process printed them, and the first of those that are told
// apart by a name.
const (
	unlabelled = label.None
	namedRank  = label.Named
)

// countsWord reports whether a word is for what counts.
func countsWord(word string) bool { return unitWords[word] != noUnit }

// Labels take off lines what says which process printed them; each stream has its own.
type Labels struct{ sources label.Sources }

// Off is a line without its label, and the rank in that: −1 where there is none, or it may be a step.
func (l *Labels) Off(line string) (rest string, rank int) {
	l.sources.Counts, l.sources.Colour = countsWord, label.ColourOf([]byte(line[:min(len(line), 24)]))
	if rest, rank, tentative := l.sources.Peel(line); !tentative {
		return rest, rank
	}
	return line, unlabelled
}

// Name is how the lines of a process call it, where that is no number.
func (l *Labels) Name(rank int) (name string) { return l.sources.Name(rank) }
