package checkup

import (
	"context"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/remote"
)

// The head has no GPU and takes no part in what ranks do: that it differs from the
// others is as it should be, and the others keep their names.
func TestTheHeadIsNotComparedWithThoseThatTrain(t *testing.T) {
	c := Cluster{Nodes: make([]*remote.Node, 3), Places: []cloud.Node{{Head: true}, {}, {}}}
	if on := c.training(); len(on.Nodes) != 2 || on.name(0) != "node1" || on.name(1) != "node2" {
		t.Errorf("%+v", on)
	}
	gpu := [][]string{{"A10G", "550", "24"}}
	if found := differs([]seen{{}, {GPUs: gpu}, {GPUs: gpu}}, c.led()); len(found) != 0 {
		t.Errorf("%+v", found)
	}
	if found := differs([]seen{{}, {GPUs: gpu}, {}}, c.led()); len(found) != 1 || !strings.Contains(found[0].Text, "node1 has 1, node2 has 0") {
		t.Errorf("%+v", found)
	}
	c.Nodes, c.Places = c.Nodes[:2], c.Places[:2]
	if found := c.Network(context.Background()); len(found) != 1 || !strings.Contains(found[0].Text, "besides the head") {
		t.Errorf("%+v", found)
	}
}
