package environment

import (
	"context"
	_ "embed" // the script
	"fmt"
	"strconv"
	"strings"

	"github.com/dlwb/dlwb/internal/shellword"
)

// setupShell runs set-up commands.
//
//go:embed scripts/setup.sh
var setupShell string

// setup is one of the two lists of commands around an environment.
type setup struct {
	name  string // before or after
	lines []string
	key   string
	env   []string
	force bool
}

// before runs the commands of the profile that come first. What they install may
// be what the environment is made with, so they run again when that changes.
func (p preparer) before(ctx context.Context) error {
	s := p.spec
	_, err := p.setUp(ctx, setup{name: "before", lines: s.Before, env: p.modules, force: s.Force,
		key: digest("before 1", strings.Join(s.Before, "\x00"), s.Kind, s.File, s.Content, s.Python)})
	return err
}

// after runs the commands that come last, with the new environment in theirs.
func (p preparer) after(ctx context.Context, r Result) (Result, error) {
	s := p.spec
	skipped, err := p.setUp(ctx, setup{name: "after", lines: s.After, env: r.Env, force: s.Force || !r.Skipped && r.Kind != System,
		key: digest("after 1", strings.Join(s.After, "\x00"), r.Kind, s.Content, r.Python, r.Version)})
	if err != nil {
		return Result{}, err
	}
	r.Skipped = r.Skipped && skipped
	return r, nil
}

// setUp runs a list of commands, or finds that nothing has changed since they ran.
func (p preparer) setUp(ctx context.Context, s setup) (skipped bool, err error) {
	if len(s.lines) == 0 {
		return true, nil
	}
	at, last := 0, tail{}
	exit, errs, err := p.stream(ctx, p.setupLine(s), func(said string) {
		word, value, ours := strings.Cut(strings.TrimPrefix(said, "dlwb\t"), "\t")
		switch {
		case !strings.HasPrefix(said, "dlwb\t"):
			last.add(said)
			p.progress(said)
		case word == "line" && ours:
			at, _ = strconv.Atoi(value)
			last = tail{}
			p.progress(fmt.Sprintf("environment.%s: %s", s.name, s.at(at)))
		case word == "skipped":
			skipped = true
		}
	})
	if err != nil {
		return false, fmt.Errorf("environment: running the commands of environment.%s: %w", s.name, err)
	}
	if exit == 0 {
		return skipped, nil
	}
	f := &Failure{Command: s.at(at), ExitCode: exit, LastLines: readable(append(last, lastLines(errs)...), "", ""),
		Why:  fmt.Sprintf("command %d of environment.%s ended with exit code %d", at, s.name, exit),
		Next: "correct it in the profile, or try it on the node: dlwb ssh"}
	if at == 0 {
		f.Command, f.Why = "sh", fmt.Sprintf("the commands of environment.%s could not be started", s.name)
	}
	return false, f
}

// at is the command of a number, from 1.
func (s setup) at(number int) string {
	if number < 1 || number > len(s.lines) {
		return ""
	}
	return s.lines[number-1]
}

// setupLine runs setup.sh in the login shell that people try such commands in:
// that knows `module` and `source`.
func (p preparer) setupLine(s setup) string {
	var script strings.Builder
	force := ""
	if s.force {
		force = "yes"
	}
	for _, v := range [][2]string{{"dir", "dlwb/" + p.spec.Cluster}, {"mark", p.spec.Cluster + "/.dlwb-" + s.name}, {"key", s.key}, {"force", force}} {
		fmt.Fprintf(&script, "%s=%s\n", v[0], shellword.Quote(v[1]))
	}
	// What a login shell reads may set the PATH anew, as Debian's /etc/profile does.
	script.WriteString(exports(s.env) + setupShell)
	return `shell=sh; ! command -v bash >/dev/null || shell="bash -l"` + "\n" +
		"exec $shell -c " + shellword.Join(append([]string{script.String(), "dlwb"}, s.lines...)...)
}

// tail is the last lines of an output.
type tail []string

func (t *tail) add(line string) {
	if *t = append(*t, line); len(*t) > 30 {
		*t = (*t)[1:]
	}
}
