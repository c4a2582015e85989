package slurm

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/slurm/options"
	"github.com/dlwb/dlwb/internal/testprogram"
)

// What sbatch prints on sites is more than a number; a job that is in the queue is never
// called none.
func TestTheNumberOfAJobIsFoundInWhatASitePrints(t *testing.T) {
	for said, want := range map[string]string{
		"17": "17", "17;tiger": "17",
		"*** Welcome to Tiger ***\n2 of 4 quota used\n17":                 "17",
		"17;tiger\n-- charged to lab --":                                  "17",
		"Welcome\nSubmitted batch job 17":                                 "17",
		"Submitted batch job 17 on cluster tiger":                         "17",
		"sbatch: info\n  17 hours are left of your allocation\n18\n\nBye": "18",
		"quota: 12": "",
	} {
		bin, dir := t.TempDir(), t.TempDir()
		script := "#!/bin/sh\ncat >/dev/null\nprintf '%s\\n' '" + said + "'\n"
		if err := testprogram.Write(filepath.Join(bin, "sbatch"), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		c := exec.Command("sh", "-c", sbatchLine(words(dir), "life", false))
		c.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
		c.Stdin = strings.NewReader("#!/bin/sh\n")
		out, err := c.Output()
		kept, _ := os.ReadFile(filepath.Join(dir, "id"))
		if string(out) != want || strings.TrimSpace(string(kept)) != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, kept %q, %v; want %q", said, out, kept, err, want)
		}
		if _, err := os.Stat(filepath.Join(dir, "trying")); want == "" && err != nil {
			t.Errorf("%q: that a job may come is forgotten", said)
		}
	}
}

// Options of a site come into the script; those that are dlwb's own are refused.
func TestOptionsOfASiteAreAddedAndNoneReplacesDlwbs(t *testing.T) {
	o := order{run: "r", nodes: 1, Machines: options.Machines{GPUs: 4, GPUType: "a100", Sbatch: []string{"--reservation=lab", "--gpus-per-node=a100:4", "--exclusive"}}}
	script := o.script()
	for _, want := range []string{"#SBATCH --reservation=lab\n", "#SBATCH --gpus-per-node=a100:4\n", "#SBATCH --exclusive\n"} {
		if !strings.Contains(script, want) {
			t.Errorf("the script lacks %q:\n%s", want, script)
		}
	}
	if strings.Contains(script, "--gres") {
		t.Errorf("GPUs are asked for twice:\n%s", script)
	}
	o.Sbatch = []string{"--mem-per-cpu=4G"}
	if !strings.Contains(o.script(), "#SBATCH --gres=gpu:a100:4\n") {
		t.Errorf("no GPUs are asked for:\n%s", o.script())
	}
	for text, want := range map[string]string{
		"--output=/tmp/x": "dlwb's own", "--array=1-4": "dlwb's own", "--wrap": "dlwb's own", "-n4": "long form", "--comment=x": "dlwb's own",
		"reservation=lab": "long form", "--reservation='a b'": "long form", "--x=$(id)": "long form", "--x=a`id`": "long form", `--x="y`: "long form",
	} {
		if faults := options.Provider.Check(&options.Machines{Sbatch: []string{text}}); len(faults) != 1 || !strings.Contains(faults[0].Why, want) {
			t.Errorf("%s: %v", text, faults)
		}
	}
}

// A cluster that shows nobody what is others' says so, and no place in the queue and no
// lack of nodes is made of it.
func TestWhatAClusterHidesIsNoFinding(t *testing.T) {
	config := answer{out: "PreemptMode             = OFF\nPrivateData             = jobs,nodes,usage\n"}
	if !hides(config, "jobs") || !hides(config, "nodes") || hides(config, "accounts") || hides(answer{out: "PrivateData = none\n"}, "jobs") {
		t.Error("what is hidden is not read")
	}
	parts := partitionsOf(answer{out: "PartitionName=gpu Default=YES MaxTime=UNLIMITED MinNodes=2 State=UP TotalNodes=40\n"})
	c := &cluster{partitions: parts}
	if f := c.gpus(cloud.Spec{Count: 2}, options.Machines{GPUs: 4}, parts[0]); !f.OK || !strings.Contains(f.Text, "does not show its nodes") {
		t.Errorf("%+v", f)
	}
	found := c.judge(cloud.Spec{Count: 1}, options.Machines{})
	if last := found[len(found)-1]; last.OK || !strings.Contains(last.Text, "2 at least") {
		t.Errorf("fewer nodes than a job must have: %+v", found)
	}
}

// Ranks in an image are started by apptainer's own line, with the image's Python.
func TestRanksInAnImageAreStartedByApptainer(t *testing.T) {
	bin := t.TempDir()
	write := func(name string) {
		if err := testprogram.Write(filepath.Join(bin, name), []byte("#!/bin/sh\nprintf '%s|' "+name+" \"$@\"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("singularity")
	run := func(argv []string) string {
		c := exec.Command(argv[0], argv[1:]...)
		c.Env = []string{"PATH=" + bin + ":/usr/bin:/bin"}
		out, err := c.Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	for _, c := range []struct {
		image string
		gpus  int
		want  string
	}{
		{"~/img/a b.sif", 2, "exec|--nv|/home/ada/img/a b.sif|python3|-u|train.py|--x=1 2|"},
		{"docker://pytorch/pytorch:latest", 0, "exec|docker://pytorch/pytorch:latest|python3|-u|train.py|--x=1 2|"},
	} {
		argv, err := inImage(c.image, "/home/ada", c.gpus, []string{"/usr/bin/python3.11", "-u", "train.py", "--x=1 2"})
		if err != nil {
			t.Fatal(err)
		}
		if got := run(argv); got != "singularity|"+c.want {
			t.Errorf("%s: %s", c.image, got)
		}
	}
	write("apptainer")
	argv, err := inImage("/x.sif", "/home/ada", 0, []string{"./train.sh"})
	if err != nil || run(argv) != "apptainer|exec|/x.sif|./train.sh|" {
		t.Errorf("%q, %v", argv, err)
	}
	if _, err := inImage("/x.sif", "/home/ada", 0, []string{"/home/ada/dlwb/n/venv/bin/python", "x.py"}); err == nil || !strings.Contains(err.Error(), "environment: system") {
		t.Errorf("a venv in an image: %v", err)
	}
	if argv, err := inImage("", "/home/ada", 4, []string{"/home/ada/venv/bin/python"}); err != nil || len(argv) != 1 {
		t.Errorf("without an image: %q, %v", argv, err)
	}
}

// The codes of a script that began nothing are told; those of its ranks are theirs.
func TestACodeOfTheScriptIsItsOwnOnlyBeforeARankBegins(t *testing.T) {
	for _, code := range []int{65, 66} {
		s := seen{id: "17", state: "FAILED", code: code}
		if s.why() != "" || s.early() == "" {
			t.Errorf("%d: %q, %q", code, s.why(), s.early())
		}
	}
	for reason, want := range map[string]bool{"QOSMaxGRESPerJob": true, "AssocMaxNodePerJobLimit": true, "QOSMaxJobsPerUserLimit": false, "QOSMaxWallDurationPerJobLimit": true} {
		if _, hopeless := wordsOf(reason); hopeless != want {
			t.Errorf("%s: hopeless is %v", reason, hopeless)
		}
	}
}
