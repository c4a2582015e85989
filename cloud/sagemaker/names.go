package sagemaker

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ownimage"
	"github.com/dlwb/dlwb/internal/pattern"
)

// The tags of what dlwb makes.
const (
	tagLife = "dlwb:life"
	tagRun  = "dlwb:run"
	tagName = "dlwb:cluster"
	tagWhy  = "dlwb:stopped" // why dlwb stopped it
)

// The kinds of entries in the ledger.
const (
	kindJob  = "training-job"
	kindCode = "s3-objects"
)

// longestName is what SageMaker takes.
const longestName = 63

var notInName = pattern.New(`[^A-Za-z0-9]+`)

// nameOf is the name of the job of a run: its id where that can be one, and never
// the same for two ids. SageMaker has each name once, for ever.
func nameOf(run string) string {
	name := strings.Trim(notInName.ReplaceAllString(run, "-"), "-")
	if name == run && name != "" && len(name) <= longestName {
		return name
	}
	sum := sha256.Sum256([]byte(run))
	return strings.Trim(strings.TrimRight(name[:min(len(name), longestName-9)], "-")+"-"+hex.EncodeToString(sum[:4]), "-")
}

// ref is what Open finds a job by. It holds no secret.
type ref struct {
	Region string `json:"region"`
	// Account is whose the job is: who has the credentials of another sees none.
	Account string `json:"account,omitempty"`
	Name    string `json:"name"`
	Bucket  string `json:"bucket"`
	Prefix  string `json:"prefix"` // of what is the run's own
	Output  string `json:"output"` // s3://…, without the job's name
	// Ranks are those of each replica.
	Ranks [][]int `json:"ranks"`
	// Tagged says that the lines of its logs name the rank that printed them, and
	// Told that the last line of each host tells how its ranks ended.
	Tagged bool `json:"tagged,omitempty"`
	Told   bool `json:"told,omitempty"`
	// Unwatched is why CloudWatch does not tell what the machines do; empty: it does.
	Unwatched string `json:"unwatched,omitempty"`
	// Debug says that Systems Manager gives shells and ports of its containers.
	Debug bool `json:"debug,omitempty"`
	// PerHour is what all machines cost, in US dollars; 0: not known.
	PerHour float64 `json:"per_hour,omitempty"`
	// Stay is for how many seconds its machines are kept for another job.
	Stay float64 `json:"stay,omitempty"`
	// Built is the image that was built for it; nil: none was.
	Built *ownimage.Built `json:"image,omitempty"`
}

func (r ref) String() string {
	text, _ := json.Marshal(r)
	return string(text)
}

// outputOf is where SageMaker puts what the job leaves.
func (r ref) outputOf() string { return r.Output + "/" + r.Name + "/output/" }

func readRef(text string) (r ref, err error) {
	if err := json.Unmarshal([]byte(text), &r); err != nil || r.Name == "" || r.Region == "" {
		return r, fmt.Errorf("%q is no training job", text)
	}
	return r, nil
}

func prefixOf(life cloud.Life, name string) string { return "dlwb/" + life.ID + "/" + name + "/" }

// entryOf is what the ledger has of a job, and of its code.
func entryOf(life cloud.Life, name string) (made, code *cloud.Entry, err error) {
	all, err := life.Ledger.Entries()
	for i := range all {
		switch all[i].Token {
		case name:
			made = &all[i]
		case codeToken(name):
			code = &all[i]
		}
	}
	return made, code, err
}

func codeToken(name string) string { return name + ":code" }
