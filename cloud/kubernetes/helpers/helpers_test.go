package helpers

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/pack"
	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/remote/engine"
	"github.com/dlwb/dlwb/workbench/planning"
)

// laid is a job of an engine on three pods with two GPUs each.
func laid(t *testing.T, name string, given bool) cloud.Job {
	t.Helper()
	nodes := make([]engine.Node, 3)
	for i := range nodes {
		nodes[i] = engine.Node{Host: job.HostOf(i), GPUs: 2}
	}
	plan, err := engine.Make(name, nodes, engine.Job{Command: []string{"python", "train.py", "~/.dlwb/runs/run/raystart.py"}, Python: "python3", RankScript: "~/.dlwb/bin/rank", RunDir: "~/.dlwb/runs/run", Run: "run",
		PortName: job.Port, Unplaced: true, Given: given})
	if err != nil {
		t.Fatal(err)
	}
	j := cloud.Job{Run: "run", Replicas: 3, Command: plan.Command, Engine: plan.Engine, Files: planning.Files(plan), Leads: plan.Leads}
	j.Procs, j.Ranks = planning.Parts(plan)
	return j
}

// A job has helpers where nobody else starts them.
func TestHelpersAreNeededWhereNobodyElseStartsThem(t *testing.T) {
	for name, want := range map[string]bool{"ray": true, "torchrun": false, "plain": false} {
		if got := Needed(laid(t, name, false)); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if Needed(laid(t, "ray", true)) {
		t.Error("a Ray that is given is started once more")
	}
}

// Pod 0 has Ray's head and the driver, the others have Ray's workers, each with its file,
// at the addresses of the pods. The user's own words stay as they are.
func TestThePodsHaveRaysHeadItsWorkersAndTheDriver(t *testing.T) {
	nodes := Nodes(laid(t, "ray", false), "/w", []string{"run-0.run", "run-1.run", "run-2.run"}, 29500)
	var got []string
	for _, n := range nodes {
		for _, p := range n.Procs {
			after := ""
			if p.After != nil {
				after = fmt.Sprintf(" after %s: %s", p.After.What, strings.Join(p.After.Argv[3:], " "))
			}
			got = append(got, fmt.Sprintf("%d %s helper=%v ranks=%v %s%s", n.Number, p.Name, p.Helper, p.Ranks, strings.Join(p.Argv, " "), after))
		}
		if n.Head != "run-0.run:29998" || n.Pods != 3 {
			t.Errorf("%+v", n)
		}
	}
	start := func(node int) string {
		return fmt.Sprintf("python3 /w/files/%d/raystart.py 240 start --block --disable-usage-stats --node-ip-address=run-%d.run --node-name=node%d --num-gpus=2 --min-worker-port=0 --max-worker-port=0", node, node, node)
	}
	want := []string{
		"0 ray helper=true ranks=[] " + start(0),
		"0 rank-0 helper=false ranks=[0] python3 train.py ~/.dlwb/runs/run/raystart.py after Ray to show 3 nodes and 6 GPUs: run-0.run:29500 3 6 180",
		"1 ray helper=true ranks=[] " + start(1), "2 ray helper=true ranks=[] " + start(2),
	}
	if len(got) != len(want) {
		t.Fatal(strings.Join(got, "\n"))
	}
	for i := range want {
		begin, end, _ := strings.Cut(want[i], " after ")
		if !strings.HasPrefix(got[i], begin) || !strings.HasSuffix(got[i], end) {
			t.Errorf("%s\nis not\n%s", got[i], want[i])
		}
	}
	for _, i := range []int{2, 3} {
		if !strings.Contains(got[i], " --address=run-0.run:29500 after the head of Ray on node0: run-0.run:29500 0 0") {
			t.Error(got[i])
		}
	}
	if !slices.Contains(nodes[0].Procs[1].Env, "RAY_ADDRESS=run-0.run:29500") {
		t.Error(nodes[0].Procs[1].Env)
	}
	files := packed(t, nodes)
	for _, name := range []string{"serve.py", "node/0.json", "node/2.sh", "files/0/raystart.py", "files/2/raystart.py"} {
		if files[name] == "" {
			t.Errorf("%s is not given", name)
		}
	}
	for name, text := range files {
		if strings.HasPrefix(name, "node/") && (strings.Contains(text, ".invalid") || strings.Contains(strings.ReplaceAll(text, "train.py\",\"~/.dlwb", ""), "~/.dlwb")) {
			t.Errorf("%s has what stands for something:\n%s", name, text)
		}
	}
}

func packed(t *testing.T, nodes []Node) map[string]string {
	t.Helper()
	var b bytes.Buffer
	a := pack.NewArchive(&b)
	if err := errors.Join(Pack(a, nodes), a.Close()); err != nil {
		t.Fatal(err)
	}
	zip, err := gzip.NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for in := tar.NewReader(zip); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		text, readErr := io.ReadAll(in)
		if err := errors.Join(err, readErr); err != nil {
			t.Fatal(err)
		}
		files[h.Name] = string(text)
		if strings.HasSuffix(h.Name, ".json") && !json.Valid(text) {
			t.Errorf("%s is no JSON", h.Name)
		}
	}
}

func TestWhyAPodOfHelpersEndedIsTold(t *testing.T) {
	for _, c := range []struct {
		message     string
		code, ranks int
		want        string
	}{
		{"helper: ray on node0 ended with code 1\nranks: 0:143\n", 1, 1, "ray on node0 ended with code 1"},
		{"ranks: 0:1\n", 1, 1, ""},
		{"", 137, 0, "pod p, which serves the ranks of others, ended with code 137"},
		{"", 143, 0, ""}, {"", 0, 0, ""}, {"launcher: deadline\n", 143, 0, ""},
	} {
		if got := Ended("p", c.message, c.code, c.ranks); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
