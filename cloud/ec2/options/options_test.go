package options

import (
	"strings"
	"testing"
)

// What only several keys together show to be wrong is told with its key.
func TestWhatCanNotBeTogetherIsToldByItsKey(t *testing.T) {
	for key, m := range map[string]Machines{
		"reach":           {Reach: "bastion"},
		"jump":            {Reach: ReachPublic, Jump: "bastion"},
		"ssh_from":        {Groups: []string{"sg-1"}, SSHFrom: []string{"203.0.113.0/24"}},
		"disk_throughput": {DiskIOPS: 3000, DiskThroughput: 1000},
		"tags":            {Tags: map[string]string{"dlwb:life": "mine"}},
		"user_data":       {UserData: "echo hello"},
	} {
		faults := check(&m)
		if len(faults) != 1 || faults[0].Key != "machines."+key || faults[0].Next == "" {
			t.Errorf("%s: %+v", key, faults)
		}
	}
	good := Machines{Reach: "eice-0123", Groups: []string{"sg-1"}, DiskIOPS: 4000, DiskThroughput: 1000, Tags: map[string]string{"team": "vision"}, UserData: "#!/bin/sh\ntrue\n"}
	if faults := check(&good); len(faults) > 0 {
		t.Errorf("%+v", faults)
	}
	for _, kind := range effects(&good) {
		if strings.Contains(kind.Text, "as root") && kind.Unusual {
			return
		}
	}
	t.Error("nobody is told what runs as root")
}
