package engine

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Ray ends at once where the path of a socket has more than 107 bytes, and the
// name of a profile may be long.
func TestTheSocketsOfRayFitWhateverARunIsCalled(t *testing.T) {
	for run, want := range map[string]string{
		"r7":                                   "/tmp/ray-r7",
		"digits-ray-tune-1124-203742-58cb":     "/tmp/ray-ray-tune-1124-203742-58cb",
		strings.Repeat("x", 60) + "-1124-0-aa": "",
	} {
		plan, err := Make("ray", cluster(2, 0), Job{Command: []string{"t.py"}, Run: run})
		if err != nil {
			t.Fatal(err)
		}
		argv := plan.Nodes[0][0].Argv
		dir := strings.TrimPrefix(argv[slices.IndexFunc(argv, func(w string) bool { return strings.HasPrefix(w, "--temp-dir=") })], "--temp-dir=")
		if len(dir+raySocket) > 107 || want != "" && dir != want || !strings.HasSuffix(run, dir[len("/tmp/ray-"):]) {
			t.Errorf("%s: %s", run, dir)
		}
	}
}

// Where somebody else starts Ray, the driver finds it by itself, and the head that is one
// more has no part in the training, whatever its threads are.
func TestADriverInARayThatIsGivenHasTheWorkersOfTheOthers(t *testing.T) {
	nodes := append([]Node{{Head: true}}, cluster(2, 4)...)
	plan, err := Make("ray", nodes, Job{Command: []string{"t.py"}, Given: true, MaxThreads: 8})
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Ranks()) != 1 || plan.WorldSize != 8 || !plan.Leads || len(plan.Files) > 0 {
		t.Errorf("%+v", plan)
	}
	driver := plan.Nodes[0][1]
	if driver.After != nil || !slices.Contains(driver.Env, "DLWB_WORKERS=8") || !slices.Contains(driver.Env, "DLWB_GPUS=8") || slices.ContainsFunc(driver.Env, func(v string) bool { return strings.HasPrefix(v, "RAY_ADDRESS") }) {
		t.Errorf("%+v", driver)
	}
}

// Before a job begins nobody knows which machines it gets: two of its nodes may be one, and
// each has ports that no other has.
func TestRaysOnMachinesThatAreNotKnownHavePortsOfTheirOwn(t *testing.T) {
	for _, unplaced := range []bool{false, true} {
		plan, err := Make("ray", cluster(3, 0), Job{Command: []string{"t.py"}, MasterPort: 20000, Unplaced: unplaced})
		if err != nil {
			t.Fatal(err)
		}
		ports := map[string]int{}
		for _, procs := range plan.Nodes {
			for _, word := range procs[0].Argv {
				if option, port, is := strings.Cut(word, "="); is && slices.Contains(rayAgentPorts, option+"=") {
					ports[port]++
				}
			}
		}
		if want := map[bool]int{false: 4, true: 12}[unplaced]; len(ports) != want || plan.Ports != rayAgents+want {
			t.Errorf("unplaced: %v: the nodes have the ports %v of their own, of %d in all", unplaced, ports, plan.Ports)
		}
	}
}

// rayStub are modules of a Ray that says how it was started, on a network with these names.
var rayStub = map[string]string{
	"__init__.py": `import socket
names = {"gpu1": ["2001:db8::1", "10.1.2.3"], "alone": ["127.0.1.1"], "six": ["2001:db8::2"]}
socket.getaddrinfo = lambda name, *more, **others: [(0, 0, 0, "", (address, 0)) for address in names[name]]
`,
	"_private/__init__.py": "", "_private/node.py": "class Node: pass\n", "_private/services.py": "", "_raylet.py": "", "scripts/__init__.py": "",
	"scripts/scripts.py": "import sys\ndef main(): print(*sys.argv)\n",
}

func TestRayIsToldTheAddressThatTheNameOfANodeLeadsTo(t *testing.T) {
	dir := t.TempDir()
	for name, text := range rayStub {
		path := filepath.Join(dir, "ray", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"gpu1": "10.1.2.3", "alone": "127.0.0.1", "six": "2001:db8::2", "10.0.0.7": "10.0.0.7", "fd00::1": "fd00::1"} {
		c := exec.Command("python3", "-c", rayBegin, "240", "start", "--node-ip-address="+name, "--node-name=node1")
		c.Dir, c.Env = dir, append(os.Environ(), "PYTHONPATH="+dir) // ray.py lies beside this test
		out, err := c.CombinedOutput()
		if err != nil || string(out) != "ray start --node-ip-address="+want+" --node-name=node1\n" {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}
