package home

import (
	"errors"
	"testing"
	"time"

	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/event"
)

func some() *List {
	l := New("/here/dlwb.yaml")
	l.Set(event.Home{
		Clusters: []event.ClusterInfo{{Name: "charlm", Provider: "local", Run: "r1"}, {Name: "vision", Provider: "ec2"}},
		Profiles: []event.ProfileInfo{{Name: "other", Path: "/other/dlwb.yaml"}},
		Runs:     []event.RunInfo{{ID: "r1", Cluster: "charlm"}},
	}, nil)
	return &l
}

func TestTheProfileOfThisDirectoryComesFirst(t *testing.T) {
	l := some()
	l.Move(2)
	if l.Path() != "/here/dlwb.yaml" || l.Pick().Profile.Name != "here" {
		t.Errorf("after the clusters stands %q", l.Path())
	}
}

func TestAFilterKeepsWhatHasAllWords(t *testing.T) {
	l := some()
	l.SetFilter("EC2 vis")
	if c := l.Cluster(); c == nil || c.Name != "vision" || len(l.items()) != 1 {
		t.Errorf("%d items, the first %+v", len(l.items()), l.Pick())
	}
	if !l.Back() || l.Back() || len(l.items()) != 5 {
		t.Errorf("%d items without a filter", len(l.items()))
	}
}

func TestALookThatFailsKeepsWhatWasKnown(t *testing.T) {
	l := some()
	l.Set(event.Home{}, errors.New("the store is locked"))
	if len(l.Clusters()) != 2 || l.fault != "the store is locked" {
		t.Errorf("%d clusters, %q", len(l.Clusters()), l.fault)
	}
}

func TestASecondClickOnARowOpensIt(t *testing.T) {
	styles := text.NewStyles(true)
	l := some()
	p := Page{Look: text.Look{Styles: &styles, Now: time.Now()}, List: l}
	rows := len(p.Draw(100, 30))
	for y := range rows {
		first := p.Click(y, 100, 30)
		_, item := p.rowAt(y, 100, 30)
		if second := p.Click(y, 100, 30); second != item || first && y != 1 { // the cursor is on the first cluster
			t.Errorf("row %d: %v, then %v", y, first, second)
		}
	}
}
