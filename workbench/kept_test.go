package workbench

import (
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/planning"
)

func TestMachinesThatStaySayWhenTheyEndByThemselves(t *testing.T) {
	soon, late := time.Now().Add(10*time.Minute), time.Now().Add(5*time.Hour)
	for _, c := range []struct {
		provider string
		idle     time.Duration
		ends     time.Time
		want     string
	}{
		{"local", time.Hour, late, ""},
		{"ec2", 0, time.Time{}, ""},
		{"ec2", time.Hour, time.Time{}, "they end by themselves after 1h without work"},
		{"ec2", time.Hour, late, "they end by themselves after 1h without work, at " + clockText(late) + " at the latest"},
		{"ec2", time.Hour, soon, "they end by themselves at " + clockText(soon)},
		{"ec2", 0, late, "they end by themselves at " + clockText(late)},
	} {
		p := &profiles.Profile{}
		p.Limits.Idle = c.idle
		d := &drive{plan: &planning.Plan{Profile: p}, data: clusterData{Cluster: cloud.Cluster{Provider: c.provider, ExpiresAt: c.ends}}}
		if got := d.endsAlone(); got != c.want {
			t.Errorf("%s, idle %s, until %s: %q, want %q", c.provider, c.idle, c.ends, got, c.want)
		}
	}
}

func TestTheCommandThatGoesOnIsTheOneThatBegan(t *testing.T) {
	for want, goal := range map[string]Goal{
		"dlwb run '/home/ada/my lab/dlwb.yaml'":   {},
		"dlwb sweep '/home/ada/my lab/dlwb.yaml'": {Sweep: "s1"},
		"dlwb up '/home/ada/my lab/dlwb.yaml'":    {Until: event.StepEnvironment},
		"dlwb sync '/home/ada/my lab/dlwb.yaml'":  {Until: event.StepSync},
		"dlwb rerun demo-1":                       {RerunOf: "demo-1"},
	} {
		d := &drive{plan: &planning.Plan{Path: "/home/ada/my lab/dlwb.yaml"}, goal: goal}
		if got := d.again(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestNobodyIsToldToDoAgainWhatIsRefused(t *testing.T) {
	d := &drive{plan: &planning.Plan{Cluster: "c", Path: "/p/dlwb.yaml", Findings: []cloud.Finding{{OK: true}}}}
	if got := d.waysOn(); got != "dlwb run /p/dlwb.yaml goes on with them, what is done already is not done twice; dlwb down c removes them" {
		t.Error(got)
	}
	d.plan.Findings = append(d.plan.Findings, cloud.Finding{What: "cluster", Text: "c has 1 node, and 2 are asked for"})
	if got := d.waysOn(); got != "dlwb down c removes them" {
		t.Error(got)
	}
}
