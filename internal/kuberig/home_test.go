//go:build linux

package kuberig_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/overlay"
)

const writes = `import json, os, time
task = json.loads(os.environ["TF_CONFIG"])["task"] if "TF_CONFIG" in os.environ else {"index": int(os.environ["RANK"])}
os.makedirs("outputs", exist_ok=True)
rank = task["index"]
with open(os.path.join(os.environ["DLWB_RESULTS"], "notes"), "w") as f: f.write("of %d" % rank)
print("written", flush=True)
while os.path.exists("wait") and not os.path.exists("enough"): time.sleep(0.1)
if rank == 0:
    with open("outputs/model.bin", "wb") as f: f.write(b"m" * 3_000_000)
`

// homeOf reads the results of a run that came here.
func (p *project) homeOf(out string) map[string]int {
	p.Helper()
	files := map[string]int{}
	dir := ""
	for _, m := range regexp.MustCompile(`"dir":"([^"]+)"`).FindAllStringSubmatch(out, -1) {
		dir = m[1]
	}
	if dir == "" {
		p.Fatalf("nothing says where the results are:\n%s", out)
	}
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			info, _ := d.Info()
			rel, _ := filepath.Rel(dir, path)
			files[rel] = int(info.Size())
		}
		return nil
	})
	return files
}

// What a run writes in its pods is in the directory of the run when they are gone: of
// each kind of job, and also when the dlwb that watched was killed.
func TestWhatARunWritesInPodsComesHome(t *testing.T) {
	c, program := cluster(t), overlay.Build(t, nil)
	want := fmt.Sprint(map[string]int{"node0/notes": 4, "node1/notes": 4, "outputs/model.bin": 3_000_000})
	for engine, kind := range map[string]string{"plain": "pytorchjob", "tensorflow": "tfjob", "ray": "rayjob"} {
		want := want
		if engine == "ray" { // the workers run what the driver tells them
			want = fmt.Sprint(map[string]int{"node0/notes": 4, "outputs/model.bin": 3_000_000})
		}
		t.Run(kind, func(t *testing.T) {
			p := newProject(t, program, c.Kubeconfig)
			p.Write("train.py", writes)
			p.profile("name: home\nprovider: kubernetes\nmachines: {count: 2}\nresults: {paths: [outputs/]}\nrun: {engine: " + engine + ", command: train.py}\n")
			out := p.Must("run", "--json", "--down")
			if !strings.Contains(out, strings.ToLower(kind)) {
				t.Errorf("it became no %s:\n%s", kind, out)
			}
			if got := fmt.Sprint(p.homeOf(out)); got != want {
				t.Errorf("home is %s\n%s", got, out)
			}
			if proven := p.eventOf(out, "receipt")["proven"]; proven != true {
				t.Errorf("the receipt says %v", proven)
			}
		})
	}
	t.Run("killed", func(t *testing.T) {
		p := newProject(t, program, c.Kubeconfig)
		p.Write("train.py", writes)
		p.Write("wait", "")
		p.profile("name: home\nprovider: kubernetes\nmachines: {count: 2, kind: job}\nresults: {paths: [outputs/]}\nrun: {engine: plain, command: train.py}\n")
		run := p.Command("run", "--json")
		p.started(run, "written")
		p.Must("exec", "home", "--plain", "--", "touch", "/dlwb/work/code/enough")
		_ = run.Process.Kill()
		_ = run.Wait()
		time.Sleep(3 * time.Second) // the ranks end while nobody looks
		out := p.Must("attach", "home", "--json")
		if got := fmt.Sprint(p.homeOf(out)); got != want {
			t.Errorf("home is %s\n%s", got, out)
		}
		if proven := p.eventOf(p.Must("down", "home", "--json"), "receipt")["proven"]; proven != true {
			t.Errorf("the receipt says %v", proven)
		}
	})
}
