package ecs

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ownimage"
	"github.com/dlwb/dlwb/internal/pattern"
)

// The tags of what dlwb makes.
const (
	tagLife    = "dlwb:life"
	tagCluster = "dlwb:cluster"
	tagExpires = "dlwb:expires"
	tagWhy     = "dlwb:stopped" // why dlwb stopped the job
)

// The kinds of entries in the ledger, in the order in which they are made.
const (
	kindGroup     = "security-group"
	kindPlacement = "placement-group"
	kindLogs      = "log-group"
	kindCluster   = "ecs-cluster"
	kindTemplate  = "launch-template"
	kindScaling   = "auto-scaling-group"
	kindCapacity  = "capacity-provider"
	kindSecret    = "ssm-parameter"
	kindTask      = "task-definition"
	kindService   = "ecs-service"
	kindJob       = "ray-job"

	kindInstance = "instance" // of a group; on receipts alone
)

// The two parts of a Ray cluster.
const (
	head   = "head"
	worker = "worker"
)

// detail is what the ledger has of each thing.
type detail struct {
	Region  string `json:"region"`
	Account string `json:"account"`
	Name    string `json:"name"`
	// Ends is when the scheduled action ends the machines of a group.
	Ends time.Time `json:"ends,omitzero"`
	// PerHour is what a group costs with the Count machines that it was made with, in US
	// dollars; 0: not known.
	PerHour float64 `json:"per_hour,omitempty"`
	Count   int32   `json:"count,omitempty"`
	// Of is what its machines and containers are made of, by the key of the profile.
	Of map[string]string `json:"of,omitempty"`
	// Job is what a Ray job is found by.
	Job *ref `json:"job,omitempty"`
}

func detailOf(e *cloud.Entry) (d detail, err error) {
	if err := json.Unmarshal(e.Detail, &d); err != nil || d.Region == "" || d.Name == "" {
		return d, fmt.Errorf("what the ledger has of %s can't be read", e.Token)
	}
	return d, nil
}

// baseName is the name of everything of a life.
func baseName(life cloud.Life) string { return "dlwb-" + life.Name + "-" + life.ID }

var notInName = pattern.New(`[^A-Za-z0-9_-]`)

// partName is the name of a thing of which there are two.
func partName(life cloud.Life, part string) string {
	return notInName.ReplaceAllString(baseName(life), "-") + "-" + part
}

// clusterName is the name of what there is one of.
func clusterName(life cloud.Life) string { return notInName.ReplaceAllString(baseName(life), "-") }

// token is what a thing has in the ledger. Its name is that of no other thing of its
// kind.
func token(kind, name string) string { return kind + ":" + name }

// ref is what Open finds a job by. It holds no secret.
type ref struct {
	Region  string  `json:"region"`
	Account string  `json:"account"`
	Cluster string  `json:"cluster"`
	Name    string  `json:"name"` // the job's submission_id
	Reach   string  `json:"reach"`
	Ranks   [][]int `json:"ranks"` // those of each replica
	PerHour float64 `json:"per_hour,omitempty"`
	// There says that the cluster is not dlwb's: Cluster is its own name.
	There bool `json:"there,omitempty"`
	// Output is where the run writes what is to come home, in S3; empty: nowhere.
	Output string `json:"output,omitempty"`
	// Built is the image that was built for it; nil: none was.
	Built *ownimage.Built `json:"image,omitempty"`
}

func (r ref) String() string {
	text, _ := json.Marshal(r)
	return string(text)
}

func readRef(text string) (r ref, err error) {
	if err := json.Unmarshal([]byte(text), &r); err != nil || r.Name == "" || r.Region == "" || r.Cluster == "" {
		return r, fmt.Errorf("%q is no job on a Ray cluster of ECS", text)
	}
	return r, nil
}

// jobName is the submission_id of a run: Ray takes each once.
func jobName(run string) string { return notInName.ReplaceAllString(run, "-") }

// entry finds a thing in the ledger; nil: it is not there.
func entry(all []cloud.Entry, kind, name string) *cloud.Entry {
	i := slices.IndexFunc(all, func(e cloud.Entry) bool { return e.Token == token(kind, name) })
	if i < 0 {
		return nil
	}
	return &all[i]
}

var notInTags = pattern.New(`[^\pL\pN\pZ_.:/=+@-]`)

// tagText is a text with the characters and the length that tags may have.
func tagText(s string) string {
	r := []rune(notInTags.ReplaceAllString(s, "_"))
	return string(r[:min(len(r), 256)])
}

// tagsOf are the tags of everything of a life, in order.
func tagsOf(life cloud.Life, ends time.Time, users map[string]string) (all [][2]string) {
	m := maps.Clone(users)
	if m == nil {
		m = map[string]string{}
	}
	m["Name"], m[tagLife], m[tagCluster], m[tagExpires] = baseName(life), life.ID, tagText(life.Name), ends.UTC().Format(time.RFC3339)
	for _, key := range slices.Sorted(maps.Keys(m)) {
		all = append(all, [2]string{key, m[key]})
	}
	return all
}
