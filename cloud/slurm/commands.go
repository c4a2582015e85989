package slurm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/shellword"
)

// clean takes out of the environment what a user has set for Slurm's commands:
// SBATCH_PARTITION and its like would change what is asked for, SQUEUE_FORMAT and
// SLURM_TIME_FORMAT what is answered. Which cluster is meant stays.
const clean = `for v in $(env | sed -n 's/^\([A-Z][A-Z0-9_]*\)=.*/\1/p'); do case $v in ` +
	`SLURM_CONF|SLURM_CONF_SERVER|SLURM_JWT|SLURM_CLUSTERS) ;; ` +
	`SLURM_*|SLURMD_*|SBATCH_*|SQUEUE_*|SINFO_*|SACCT_*|SCONTROL_*|SRUN_*|SALLOC_*|SCANCEL_*) unset "$v" ;; esac; done; ` +
	`export LC_ALL=C SLURM_TIME_FORMAT=standard; ` +
	`soon() { if command -v timeout >/dev/null 2>&1; then timeout ` + soonSeconds + ` "$@"; else "$@"; fi; }; `

// soonSeconds is for how many seconds accounting may think: on a site whose database is
// slow or gone it would keep what the controller has said already.
const soonSeconds = "6"

// mark begins the line in front of each answer, and ends it.
const mark = "\x1e"

// question is one command whose answer is wanted.
type question struct{ name, line string }

// answer is what a command said.
type answer struct {
	code     int
	out, err string
}

// lines are the lines of what it said that are not empty.
func (a answer) lines() (all []string) {
	for line := range strings.Lines(a.out) {
		if line = strings.TrimRight(line, "\r\n"); strings.TrimSpace(line) != "" {
			all = append(all, line)
		}
	}
	return all
}

// failed is why a command failed, in Slurm's words without its prefixes; nil
// where it did not.
func (a answer) failed() error {
	if a.code == 0 {
		return nil
	}
	text := said(a.err)
	if text == "" {
		text = said(a.out)
	}
	if text == "" {
		text = fmt.Sprintf("it ended with code %d", a.code)
	}
	return errors.New(text)
}

// said is an error output in a line: "sbatch: error: " and the like are left out.
func said(text string) string {
	var all []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		for {
			head, rest, cut := strings.Cut(line, ": ")
			if !cut || !(strings.HasPrefix(head, "s") && !strings.Contains(head, " ") || head == "error" || head == "fatal") {
				break
			}
			line = rest
		}
		if line != "" {
			all = append(all, line)
		}
	}
	return strings.Join(all, "; ")
}

// asking is the line that asks several questions at once. What a command says on
// its two outputs is kept apart by a file.
func asking(questions []question) string {
	var b strings.Builder
	b.WriteString(clean + `e=$(mktemp) || exit 70; trap 'rm -f "$e"' EXIT; `)
	for _, q := range questions {
		fmt.Fprintf(&b, `printf '\036%s\n'; { %s; } 2>"$e" </dev/null; c=$?; printf '\036e%%s\n' "$c"; cat "$e"; `, q.name, q.line)
	}
	b.WriteString(`printf '\036\n'`)
	return b.String()
}

// answers reads what such a line has printed.
func answers(out string) map[string]answer {
	all := map[string]answer{}
	parts := strings.Split(out, mark)
	for i := 1; i+2 < len(parts); i += 2 {
		name, text, _ := strings.Cut(parts[i], "\n")
		code, errs, _ := strings.Cut(parts[i+1], "\n")
		a := answer{out: text, err: errs}
		if _, err := fmt.Sscanf(code, "e%d", &a.code); err != nil {
			continue
		}
		all[name] = a
	}
	return all
}

// askLimit bounds what Slurm's commands may take: where the controller is down,
// each gives up after some seconds.
const askLimit = 60 * time.Second

// ask asks on a machine.
func ask(ctx context.Context, m cloud.Machine, questions ...question) (map[string]answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, askLimit, fmt.Errorf("the commands of Slurm did not answer within %v", askLimit))
	defer cancel()
	r, err := m.Run(ctx, asking(questions), nil)
	if err != nil {
		return nil, err
	}
	all := answers(string(r.Out))
	for _, q := range questions {
		if _, is := all[q.name]; !is {
			return nil, fmt.Errorf("the answer of %s is cut short: %s", q.name, said(string(r.Err)))
		}
	}
	return all, nil
}

// askOne asks one question.
func askOne(ctx context.Context, m cloud.Machine, line string) (answer, error) {
	all, err := ask(ctx, m, question{"it", line})
	return all["it"], err
}

// words quotes words for sh.
func words(all ...string) string { return shellword.Join(all...) }
