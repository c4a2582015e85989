package market

import (
	"context"
	"errors"
	"strings"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/providers"
	"github.com/dlwb/dlwb/remote/engine"
	"github.com/dlwb/dlwb/remote/environment"
	"github.com/dlwb/dlwb/workbench/planning"
)

// Doctor looks for what would keep a cluster of this machine from training. It
// changes nothing.
func (m *Market) Doctor(ctx context.Context) []cloud.Finding {
	var findings []cloud.Finding
	for _, kind := range m.owner.Kinds() {
		if providers.Named(kind).Traits.SharedHost {
			findings = append(findings, m.owner.Check(ctx, kind, cloud.Spec{Name: "doctor", Count: 2}).Findings...)
		}
	}
	list := func(what string, names []string) {
		findings = append(findings, cloud.Finding{OK: true, What: what, Text: strings.Join(names, ", ")})
	}
	list("providers", m.owner.Kinds())
	list("environments", planning.EnvironmentKinds)
	list("engines", engine.Names())
	found, err := environment.Probe(ctx, planning.ThisMachine{}, "", "")
	var failure *environment.Failure
	switch {
	case errors.As(err, &failure):
		findings = append(findings, cloud.Finding{What: "Python", Text: failure.Why, Next: failure.Next})
	case err != nil:
		findings = append(findings, cloud.Finding{What: "Python", Text: err.Error()})
	default:
		findings = append(findings, cloud.Finding{OK: true, What: "Python", Text: found.Text})
	}
	return findings
}
