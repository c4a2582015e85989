package nodefacts

import (
	"strings"
	"testing"

	"github.com/dlwb/dlwb/remote/wire"
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
