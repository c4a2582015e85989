package agentbin

import "testing"

// What make agent wrote beside an agent is not held against it when dlwb starts.
func TestTheSumBesideAnAgentIsThatOfItsBytes(t *testing.T) {
	summedUp := 0
	for _, arch := range []string{"amd64", "arm64"} {
		packed, err := dist.ReadFile("dist/agent-linux-" + arch + ".gz")
		if err != nil {
			continue // go test by hand, without make agent
		}
		a, ok := summed("linux-" + arch)
		if !ok {
			t.Errorf("there is no sum beside the agent for %s: make agent", arch)
			continue
		}
		summedUp++
		want, err := agentOf(packed)
		if err != nil || a.Name != want.Name || a.Hash != want.Hash || a.Size != want.Size {
			t.Errorf("%s: %s of %d bytes; its bytes are those of %s, %d (%v)", arch, a.Name, a.Size, want.Name, want.Size, err)
		}
	}
	if summedUp == 0 {
		t.Skip("NOT RUN: make agent was not")
	}
}
