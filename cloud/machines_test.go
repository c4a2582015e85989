package cloud

import "testing"

func TestMachinesAreNamedWithTheirHead(t *testing.T) {
	two := []Node{{}, {}}
	led := append([]Node{{Head: true, Instance: "m5.xlarge"}}, two...)
	for want, got := range map[string]string{"2 × g5.xlarge": MachinesText(two, "g5.xlarge", false),
		"2 × g5.xlarge spot led by m5.xlarge": MachinesText(led, "g5.xlarge", true)} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
