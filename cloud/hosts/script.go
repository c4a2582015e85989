package hosts

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/internal/waits"
)

// scripts are what is run on a host: POSIX sh, one file each. Each says in its
// first lines what it is, who calls it and what it leaves.
//
//go:embed scripts/*.sh
var scripts embed.FS

// said is what a script has answered: for each key its values in order.
type said map[string][]string

// one is the last value of a key; empty when there is none.
func (s said) one(key string) string {
	if v := s[key]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

// number is the last value of a key as a number; 0 when it is none.
func (s said) number(key string) int64 {
	n, _ := strconv.ParseInt(s.one(key), 10, 64)
	return n
}

// whole reports whether the script came to its end.
func (s said) whole() bool { return s.one("end") == "ok" }

// run runs a script with variables set in front. What it said before it failed
// or ran out of time is returned with the error.
func (c *contact) run(ctx context.Context, script string, vars map[string]string, limit time.Duration) (said, error) {
	text, err := scripts.ReadFile("scripts/" + script + ".sh")
	if err != nil {
		return nil, err
	}
	var program strings.Builder
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		program.WriteString(name + "='" + strings.ReplaceAll(vars[name], "'", `'\''`) + "'\n")
	}
	// The shell executes nothing before it has read all of it: when the
	// connection is lost half-way, nothing happens.
	program.WriteString("main() {\n" + string(text) + "\n}\nmain\n")
	ctx, cancel := waits.Within(ctx, waits.Wait{On: c.Alias, What: "to answer a question about itself", Limit: limit})
	defer cancel()
	out, complaints, err := c.shell(ctx, program.String())
	answer := parseSaid(out)
	var late *waits.LateError
	switch {
	case answer.whole():
		return answer, nil
	case ctx.Err() != nil:
		err = fmt.Errorf("it did not answer within %v", limit)
	case errors.As(err, &late):
		err = fmt.Errorf("it lets us in and does not answer when it is asked %s within %v", late.Wait.What, late.Wait.Limit)
	case strings.TrimSpace(complaints) != "":
		err = errors.New(lastLine(complaints))
	case err == nil:
		err = errors.New("sh ended in the middle of the script")
	}
	return answer, err
}

// mostSaid bounds what is kept of what a host says.
const mostSaid = 256 << 10

// shell feeds a program to sh on the host.
func (c *contact) shell(ctx context.Context, program string) (out, complaints string, err error) {
	session, err := c.client.Session(ctx)
	if err != nil {
		return "", "", fmt.Errorf("open an ssh session: %w", err)
	}
	defer session.Close()
	over := make(chan struct{})
	stdout, stderr := capped{full: sync.OnceFunc(func() { close(over) })}, capped{full: func() {}}
	session.Streams(strings.NewReader(program), &stdout, &stderr)
	if err := session.Start(ctx, "sh"); err != nil {
		return "", "", fmt.Errorf("start sh: %w", err)
	}
	done := make(chan error, 1)
	go func() { done <- session.Wait(ctx) }()
	select {
	case err = <-done:
	case <-over: // the end of the answer, which is asked for, can't come any more
		err = fmt.Errorf("it said more than %s, and not what it was asked", units.Bytes(mostSaid))
	case <-ctx.Done():
		err = ctx.Err()
	}
	var missing *ssh.ExitError
	if errors.As(err, &missing) && missing.ExitStatus() == 127 {
		err = errors.New("there is no sh on its PATH")
	}
	return stdout.String(), stderr.String(), err
}

// capped keeps the first bytes that are written to it, and calls full when there
// are more.
type capped struct {
	full func()

	mu   sync.Mutex
	kept []byte
}

// Write takes the next bytes.
func (c *capped) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	room := mostSaid - len(c.kept)
	c.kept = append(c.kept, p[:min(len(p), room)]...)
	if len(p) > room {
		c.full()
	}
	return len(p), nil
}

// String is what was kept.
func (c *capped) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return string(c.kept)
}

// parseSaid reads the lines of a script. Whatever a login shell's own files
// print stands between them and is passed over.
func parseSaid(out string) said {
	s := said{}
	for l := range strings.Lines(out) {
		rest, ours := strings.CutPrefix(l, "dlwb\t")
		key, value, ok := strings.Cut(rest, "\t")
		if ours && ok {
			s[key] = append(s[key], strings.TrimSpace(value))
		}
	}
	return s
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	last := strings.TrimSpace(lines[len(lines)-1])
	return strings.ToValidUTF8(last[:min(len(last), 300)], "")
}
