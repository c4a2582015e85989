package hosts

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestTheHostsOfTheSSHConfigurationAreKnown(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"config": "Include " + dir + "/more\nHost gpu1 gpu2 *.lab !old\n User ada\nHost gpu?\n Port 22\nMatch all\nHost gpu1 \"with space\"\nHost *\n",
		"more":   "Host bastion\n HostName 10.0.0.1\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := New(Options{Config: filepath.Join(dir, "config")})
	if got, want := p.Known("machines.hosts"), []string{"bastion", "gpu1", "gpu2", "with space"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := p.Known("machines.modules"); got != nil {
		t.Errorf("modules: %q", got)
	}
	if got := New(Options{Config: filepath.Join(dir, "none")}).Known("machines.hosts"); got != nil {
		t.Errorf("without a configuration: %q", got)
	}
}
