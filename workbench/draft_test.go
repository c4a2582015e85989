package workbench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cloud/about"
	ec2 "github.com/dlwb/dlwb/cloud/ec2/options"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/workbench/planning"
)

// A draft is judged by the reader of profiles, and by nothing else.
func TestADraftIsAProfile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("train.py", "import torch.distributed\n")
	write("requirements.txt", "numpy\n")
	d, notes, err := planning.New(planning.Owner{}).NewDraft(dir)
	if err != nil || len(notes) == 0 || d.Command != "train.py" || d.Environment != "venv" || d.Engine != "torchrun" {
		t.Fatalf("found %+v, %q, %v", d, notes, err)
	}
	d.Name, d.Provider, d.Region, d.Instance, d.Count = "it-s", "ec2", "us-east-1, us-west-2", "g5.xlarge", "2"
	d.Spot, d.Fallback, d.Disk, d.Budget, d.Command = true, true, "200GB", "20USD", "train.py --note 'a: b # c'"
	text, err := d.Text()
	if err != nil {
		t.Fatal(err)
	}
	p, err := profiles.Parse("x.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if len(p.Machines.Regions) != 2 || !about.Own[ec2.Machines](p.Own()).SpotFallback || p.Run.Command != d.Command || p.Limits.Budget != 20 || p.Machines.Disk != 200e9 {
		t.Errorf("it says %+v", p)
	}
	w, err := Open(Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	path, err := w.plans.SaveDraft(d)
	if err != nil || path != filepath.Join(dir, "dlwb.yaml") {
		t.Fatalf("saved %q, %v", path, err)
	}
	if home, err := w.Home(t.Context()); err != nil || len(home.Profiles) != 1 || home.Profiles[0].Path != path || home.Profiles[0].Name != "it-s" {
		t.Errorf("home has %+v, %v", home.Profiles, err)
	}
	if _, err := w.plans.SaveDraft(d); err == nil || !strings.Contains(err.Error(), "there already") {
		t.Errorf("a second time: %v", err)
	}
	for what, break_ := range map[string]func(*planning.Draft){
		"machines.count": func(d *planning.Draft) { d.Count = "two" },
		"limits.budget":  func(d *planning.Draft) { d.Budget = "a lot" },
		"name":           func(d *planning.Draft) { d.Name = "a: {b" },
		"instance":       func(d *planning.Draft) { d.Instance = "[x" },
	} {
		bad := d
		break_(&bad)
		if _, err := bad.Text(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
