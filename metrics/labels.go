package metrics

import "strings"

// Labels take off lines what says which process printed them; each stream has its own.
type Labels struct{ sources sources }

// Off is a line without its label, and the rank that this names: −1 where it names
// none, or may be a step.
func (l *Labels) Off(line string) (rest string, rank int) {
	l.sources.colour = colourOf([]byte(line[:min(len(line), 24)]))
	if rest, rank, tentative := l.sources.peel(line); !tentative && rank != unlabelled {
		return rest, rank
	}
	return line, unlabelled
}

// Name is how the lines of a process call it, where that is no number.
func (l *Labels) Name(rank int) (name string) {
	for from, r := range l.sources.names {
		if r == rank {
			name = strings.Trim(from.name, "( ")
		}
	}
	return name
}
