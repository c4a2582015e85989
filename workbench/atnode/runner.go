package atnode

import (
	"context"
	"time"

	"github.com/dlwb/dlwb/remote"
)

// setUpQuiet is how long pip and its like may be silent: some packages are
// compiled on the node.
const setUpQuiet = 2 * time.Hour

// Runner lets the environment step run commands on a node.
type Runner struct {
	Node *remote.Node
}

// Exec runs a line on the node.
func (r Runner) Exec(ctx context.Context, line string) (int, []byte, []byte, error) {
	res, err := r.Node.Exec(ctx, remote.Cmd{Line: line, Quiet: setUpQuiet})
	return res.ExitCode, res.Stdout, res.Stderr, err
}

// Stream runs a line and hands on what it prints, line by line.
func (r Runner) Stream(ctx context.Context, line string, stdout func(string)) (int, []byte, error) {
	out := &LineWriter{Line: stdout}
	var errs tailBuffer
	res, err := r.Node.Exec(ctx, remote.Cmd{Line: line, Stdout: out, Stderr: &errs, Quiet: setUpQuiet})
	out.Flush()
	return res.ExitCode, errs.kept, err
}

// LineWriter cuts what is written to it into lines.
type LineWriter struct {
	part []byte
	Line func(string)
}

// longestLine bounds what is kept of a line that does not end.
const longestLine = 4 << 10

// Write takes the next bytes.
func (w *LineWriter) Write(p []byte) (int, error) {
	for _, c := range p {
		switch {
		case c == '\n':
			w.Flush()
		case len(w.part) < longestLine:
			w.part = append(w.part, c)
		}
	}
	return len(p), nil
}

// Flush hands on a line that did not end.
func (w *LineWriter) Flush() {
	if len(w.part) > 0 {
		w.Line(string(w.part))
		w.part = w.part[:0]
	}
}

// tailMost bounds what is kept of what a command said last.
const tailMost = 64 << 10

// tailBuffer keeps the last bytes that are written to it.
type tailBuffer struct{ kept []byte }

// Write takes the next bytes.
func (b *tailBuffer) Write(p []byte) (int, error) {
	b.kept = append(b.kept, p...)
	if over := len(b.kept) - tailMost; over > 0 {
		b.kept = append(b.kept[:0], b.kept[over:]...)
	}
	return len(p), nil
}
