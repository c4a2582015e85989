package scenes

import (
	"context"
	"regexp"
	"strings"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/ui"
	"github.com/dlwb/dlwb/workbench/planning"
)

// NewDraft implements ui.Bench: a directory with a training script.
func (s *Stage) NewDraft(dir string) (planning.Draft, []string, error) {
	if dir == "" || dir == "." {
		dir = "/home/ada/lm"
	}
	return planning.Draft{Dir: dir, Name: "lm", Provider: "local", Count: "1", Environment: "venv", File: "requirements.txt",
			Engine: "auto", Command: "train.py", Results: "checkpoints", Lifetime: "1d", Idle: "1h"},
		[]string{"train.py is the training script", "requirements.txt says which packages it needs"}, s.DraftErr
}

// Paths implements ui.Bench.
func (s *Stage) Paths(string) []string {
	return []string{"train.py", "tune.py", "requirements.txt", "data/", "scripts/", "scripts/prepare.py", "bad\n\x1b[31mname.py"}
}

// Known implements ui.Bench.
func (s *Stage) Known(_, key string) []string {
	if key == "machines.hosts" {
		return []string{"gpu1", "gpu2"}
	}
	return nil
}

// Markets implements ui.Bench.
func (s *Stage) Markets() []string { return []string{"ec2"} }

// Offers implements ui.Bench.
func (s *Stage) Offers(_ context.Context, provider string, q cloud.Query) (cloud.Offers, error) {
	words := []string{"offers of " + provider}
	words = append(words, q.Regions...)
	if q.CPU {
		words = append(words, "cpu")
	}
	if q.Fresh {
		words = append(words, "fresh")
	}
	s.wish(strings.Join(words, " "))
	return s.OffersAre, s.OffersErr
}

// PlanDraft implements ui.Bench.
func (s *Stage) PlanDraft(context.Context, planning.Draft) (*ui.PlanView, error) {
	return s.PlanIs, s.PlanErr
}

// SaveDraft implements ui.Bench.
func (s *Stage) SaveDraft(d planning.Draft) (string, error) {
	return d.Dir + "/dlwb.yaml", s.wish("save " + d.Dir + "/dlwb.yaml")
}

// faultForm finds the key at the head of a line of the profile reader: it has
// types of its own for this, which nothing on the screen's side may know.
var faultForm = regexp.MustCompile(`(?m)^(?:\S+:\d+:\d+: )?([a-z_.]+)[^:]*: (.*)$`)

// FieldFaults implements ui.Bench.
func (s *Stage) FieldFaults(err error) []ui.FieldFault {
	var faults []ui.FieldFault
	for _, m := range faultForm.FindAllStringSubmatch(err.Error(), -1) {
		faults = append(faults, ui.FieldFault{Key: m[1], Text: m[2]})
	}
	return faults
}
