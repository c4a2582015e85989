package kubernetes

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/pattern"
	"github.com/dlwb/dlwb/internal/wholefile"
)

// The labels and annotations of what dlwb makes.
const (
	labelOwner = "app.kubernetes.io/managed-by"
	labelLife  = "dlwb.dev/life"
	labelRun   = "dlwb.dev/run"
	noteWhy    = "dlwb.dev/stopped" // why dlwb stopped it
	noteName   = "dlwb.dev/cluster"
	owner      = "dlwb"
)

// longestName leaves room for what controllers put behind the name of a job: a
// pod's name is a label and has 63 characters at most.
const longestName = 40

var notInName = pattern.New(`[^a-z0-9]+`)

// nameOf is the name of the objects of a run. It is the run's id where that can
// be one, and never the same for two ids.
func nameOf(run string) string {
	name := strings.Trim(notInName.ReplaceAllString(strings.ToLower(run), "-"), "-")
	if name == "" || name[0] < 'a' { // a service begins with a letter
		name = "run-" + name
	}
	if name == run && len(name) <= longestName {
		return name
	}
	sum := sha256.Sum256([]byte(run))
	return strings.TrimRight(name[:min(len(name), longestName-9)], "-") + "-" + hex.EncodeToString(sum[:4])
}

func labelsOf(life cloud.Life, run string) map[string]string {
	return map[string]string{labelOwner: owner, labelLife: life.ID, labelRun: nameOf(run)}
}

// ref is what Open finds a job by.
type ref struct {
	place
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Ranks are those of each replica.
	Ranks [][]int `json:"ranks"`
	// Tasks are those of the replicas of a TFJob.
	Tasks []task `json:"tasks,omitempty"`
	// Hold says that its containers stay until what they wrote is home.
	Hold bool `json:"hold,omitempty"`
	// Tagged says that the lines of its logs name the rank that printed them.
	Tagged bool `json:"tagged,omitempty"`
	// Bare says that it has no variables, and so no Secret.
	Bare bool `json:"bare,omitempty"`
	// Dir is where the ranks work; empty, as older dlwb left it: in the code.
	Dir string `json:"dir,omitempty"`
	// GPU is what the cluster calls a GPU of this job; empty: it has none.
	GPU string `json:"gpu,omitempty"`
	// Asked is when the job was asked for, until the answer is known.
	Asked time.Time `json:"asked,omitzero"`
}

// lateLimit is how long after it was asked for an object may come to be: an API server
// gives a request a minute (--request-timeout), and goes on when its client is gone.
var lateLimit = time.Minute

func (r ref) comes() string {
	return fmt.Sprintf("job %s was asked for at %s, and the answer is not known: it may still come, until %s", r.Name,
		r.Asked.Local().Format(time.TimeOnly), r.Asked.Add(lateLimit).Local().Format(time.TimeOnly))
}

func (r ref) mayCome() bool { return !r.Asked.IsZero() && time.Since(r.Asked) < lateLimit }

func (r ref) String() string {
	text, _ := json.Marshal(r)
	return string(text)
}

func readRef(text string) (r ref, err error) {
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return r, fmt.Errorf("%q is no job of Kubernetes: %w", text, err)
	}
	if kindNamed(r.Kind) == nil || r.Name == "" {
		return r, fmt.Errorf("%q is no job of Kubernetes", text)
	}
	return r, nil
}

// refFile is where a life has the ref of a run, before anything of it is made.
func refFile(life cloud.Life, run string) string {
	return filepath.Join(life.Dir, nameOf(run)+".job.json")
}

// noteRef puts a ref on record.
func noteRef(life cloud.Life, run string, r ref) error {
	return wholefile.Write(refFile(life, run), []byte(r.String()), 0o600)
}

// knownRef is the ref on record of a run; false: nothing was made of it.
func knownRef(life cloud.Life, run string) (ref, bool, error) {
	text, err := os.ReadFile(refFile(life, run))
	if errors.Is(err, os.ErrNotExist) {
		return ref{}, false, nil
	}
	if err != nil {
		return ref{}, false, err
	}
	r, err := readRef(string(text))
	return r, err == nil, err
}

// knownRefs are all refs on record of a life.
func knownRefs(life cloud.Life) (all []ref, err error) {
	files, err := fs.Glob(os.DirFS(life.Dir), "*.job.json")
	for _, file := range files {
		text, readErr := os.ReadFile(filepath.Join(life.Dir, file))
		if readErr != nil {
			return all, readErr
		}
		r, readErr := readRef(string(text))
		if readErr != nil {
			return all, readErr
		}
		all = append(all, r)
	}
	return all, err
}
