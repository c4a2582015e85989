package cli

import (
	"os"
	"path/filepath"
	"testing"
)

// Horovod is not installed for this test: these are what dlwb uses of it, and the names
// that its library has in it when it was built without MPI.
var horovodParts = map[string]string{
	"__init__.py": "", "runner/__init__.py": "", "runner/http/__init__.py": "", "runner/common/__init__.py": "", "runner/common/util/__init__.py": "",
	"torch/mpi_lib_v2.so": "N4gloo7Context",
	"runner/common/util/hosts.py": `
class Host:
    def __init__(self, text):
        self.name, self.slots = text.split(":")[0], int(text.split(":")[1])
def parse_hosts(text): return [Host(one) for one in text.split(",")]
def get_host_assignments(hosts, ranks): return [f"{h.name}:{h.slots}" for h in hosts] + [ranks]
`,
	"runner/http/http_server.py": `
import http.server
class RendezvousHandler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        text = repr(self.server.plan).encode()
        self.send_response(200); self.send_header("Content-Length", str(len(text))); self.end_headers(); self.wfile.write(text)
class RendezvousHTTPServer(http.server.ThreadingHTTPServer):
    def __init__(self, address, handler, verbose): super().__init__(address, handler)
    def init(self, plan): self.plan = plan
`,
}

// Where Horovod was built without MPI nothing is left to mpirun, whether or not there is
// one: by that each rank would be alone and the run succeed. The server of the ranks is
// there before them, and gone after them.
func TestAHorovodWithoutMPIHasAServerForItsRanks(t *testing.T) {
	b := newBed(t)
	parts := t.TempDir()
	for name, text := range horovodParts {
		file := filepath.Join(parts, "horovod", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.write("train.py", `
import os, time, urllib.request
e = os.environ
said = urllib.request.urlopen(f"http://{e['HOROVOD_GLOO_RENDEZVOUS_ADDR']}:{e['HOROVOD_GLOO_RENDEZVOUS_PORT']}/").read().decode()
# As Horovod's ranks, these end together.
here = e["HERE"]
with open(f"{here}/seen.{e['HOROVOD_RANK']}", "w") as f:
    f.write(f"{e['HOROVOD_SIZE']} by {e['HOROVOD_CONTROLLER']}: {said}")
for wait in range(600):
    if sum(name.startswith("seen.") for name in os.listdir(here)) == 4: break
    time.sleep(0.1)
`)
	b.write("dlwb.yaml", "name: bed\nprovider: local\nmachines: {count: 2}\nenvironment: {python: /usr/bin/python3}\n"+
		"run:\n  engine: horovod\n  command: train.py\n  procs_per_node: 2\n  env: {PYTHONPATH: "+parts+", HERE: "+parts+"}\n")
	r := b.run("run", "--down", "--json")
	if r.code != 0 {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	for _, rank := range []string{"0", "1", "2", "3"} {
		seen, err := os.ReadFile(filepath.Join(parts, "seen."+rank))
		if want := "4 by gloo: ['node0:2', 'node1:2', 4]"; err != nil || string(seen) != want {
			t.Errorf("rank %s: %s, %v, want %s", rank, seen, err, want)
		}
	}
	if receipt := r.one(t, "receipt"); receipt["proven"] != true || receipt["processes_left"] != 0.0 {
		t.Errorf("receipt %v", receipt)
	}
}
