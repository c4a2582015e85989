package metrics

import (
	"fmt"
	"slices"
	"strings"
)

// Labels take off lines what launchers put before them to say which process printed
// them. The zero Labels are ready; each stream has its own.
type Labels struct{ sources sources }

// Unlabelled is the rank of a line that does not say which process printed it.
const Unlabelled = unlabelled

// Off is a line without its label, and the rank that this names: Unlabelled where it
// names none, or may be a step.
func (l *Labels) Off(line string) (rest string, rank int) {
	l.sources.colour = colourOf([]byte(line[:min(len(line), 24)]))
	rest, rank, tentative := l.sources.peel(line)
	if tentative || rank == unlabelled {
		return line, Unlabelled
	}
	return rest, rank
}

// Name is how the process of a rank is called: by its number, or as its lines do.
func (l *Labels) Name(rank int) string {
	for from, r := range l.sources.names {
		if r == rank {
			return strings.Trim(from.name, "( ")
		}
	}
	return fmt.Sprint("rank ", rank)
}

// Held are the points of a name that waits to be known as a metric, as far as they
// are kept.
func (r *Reader) Held(name string) []Point {
	if s := r.series[name]; s != nil && s.ordinal == 0 {
		return slices.Clone(s.held)
	}
	return nil
}
