package nodefacts

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/remote/wire"
	"github.com/dlwb/dlwb/workbench/history"
)

func TestWhatANodeTellsIsRead(t *testing.T) {
	f := read(wire.NodeFacts{Host: "h1", Kernel: "Linux 6.1", System: "Debian", Cores: 8, Memory: 1 << 20,
		GPUs: make([]string, 100), Driver: "550.1", CUDA: strings.Repeat("1", 1000)})
	f.python([]byte(`{"packages": ["torch==2.4.0", "abc==1", "torch==2.4.0"], "torch": "2.4.0+cu121", "cuda": "12.1"}` + "\n"))
	m := f.Machine
	if f.Err != nil || m.Host != "h1" || m.Cores != 8 || m.Memory != 1<<20 || len(m.GPUs) != 64 || m.Driver != "550.1" || len(m.CUDA) != longestFact || m.System != "Debian" {
		t.Errorf("got %+v", f)
	}
	if strings.Join(f.Packages, " ") != "abc==1 torch==2.4.0" || f.Torch != "2.4.0+cu121" || f.CUDA != "12.1" {
		t.Errorf("got %+v", f)
	}
	if f.python([]byte("nonsense\n")); f.Err == nil {
		t.Error("what is no JSON was taken")
	}
}

func TestARecipeTellsWhatItsNodesHave(t *testing.T) {
	of := func(name string, packages ...string) Facts {
		return Facts{Machine: history.MachineFact{Name: name}, Packages: packages}
	}
	torch, mute := of("a", "torch==2.4.0"), Facts{Machine: history.MachineFact{Name: "c"}, Err: errors.New("no answer")}
	torch.Torch, torch.CUDA, torch.Image = "2.4.0", "12.1", "ami-1"
	for name, c := range map[string]struct {
		facts    []Facts
		complete bool
		notes    []string
	}{
		"all alike":          {[]Facts{torch, of("b", "torch==2.4.0")}, true, nil},
		"other packages":     {[]Facts{torch, of("b", "torch==2.5.0")}, true, []string{"node1 has other packages than node0: torch 2.4.0 → 2.5.0"}},
		"one does not tell":  {[]Facts{torch, mute}, true, []string{"node1 could not be asked: no answer"}},
		"the first does not": {[]Facts{mute, torch}, false, []string{"node0 could not be asked: no answer"}},
	} {
		r := history.Recipe{Image: "named"}
		Complete(&r, c.facts)
		if r.Complete != c.complete || !slices.Equal(r.Notes, c.notes) || len(r.Machines) != 2 || r.Machines[1].Name != c.facts[1].Machine.Name {
			t.Errorf("%s: %+v", name, r)
		}
		if c.complete && (r.Torch != "2.4.0" || r.CUDA != "12.1" || r.Image != "ami-1" || !slices.Equal(r.Packages, torch.Packages)) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
