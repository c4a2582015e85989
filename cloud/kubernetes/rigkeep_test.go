//go:build linux

package kubernetes

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud/kubernetes/options"
	"github.com/dlwb/dlwb/internal/job"
)

// brought is what Bring gives of a job: files with their texts, and what is left.
func (r *running) brought() (files map[string]string, left string) {
	r.Helper()
	dir := r.TempDir()
	into, err := os.OpenRoot(dir)
	if err != nil {
		r.Fatal(err)
	}
	defer into.Close()
	all, err := r.p.Bring(r.soon(), r.life, r.ref, into)
	if err != nil {
		r.Fatal(err)
	}
	files = map[string]string{}
	_ = filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			text, _ := os.ReadFile(p)
			rel, _ := filepath.Rel(dir, p)
			files[rel] = string(text)
		}
		return nil
	})
	return files, strings.Join(all, "\n")
}

const writing = `mkdir -p outputs; echo model >outputs/model.pt
echo "of $RANK" >"$DLWB_RESULTS/notes"; echo up
`

// What pods wrote is here when they are gone, whatever the job was, and the run ends as
// its ranks did.
func TestWhatPodsWroteComesHome(t *testing.T) {
	realCluster(t)
	for _, kind := range []string{options.PyTorchJob, options.TrainJob, options.Job} {
		t.Run(kind, func(t *testing.T) {
			life, j := jobOf(t, options.Machines{Kind: kind}, 2, meet+writing+`[ $RANK = 1 ] || exit 0; sleep 1; exit 3`)
			j.Keep = []string{"outputs/"}
			r := handIn(t, life, j)
			_, stories := r.all()
			if stories[0] != "started rank-ended(0) ended(0)" {
				t.Error(stories[0])
			}
			if kind == options.Job && stories[1] != "started rank-ended(3) ended(3)" {
				t.Error(stories[1])
			}
			files, left := r.brought()
			if files["outputs/model.pt"] != "model\n" || files["node0/notes"] != "of 0\n" || files["node1/notes"] != "of 1\n" || len(files) != 3 || left != "" {
				t.Errorf("%v, left %q", files, left)
			}
		})
	}
}

// Who stops a run has what it wrote, also where nobody else watched it.
func TestWhatAStoppedJobWroteComesHome(t *testing.T) {
	realCluster(t)
	life, j := jobOf(t, options.Machines{Kind: options.PyTorchJob}, 1, writing+`trap 'echo last >outputs/last; exit 0' TERM; while :; do sleep 0.1; done`)
	j.Keep = []string{"outputs"}
	r := handIn(t, life, j)
	r.await()
	r.until("up")
	if left, err := r.replicas[0].Stop(r.soon(), 3*time.Second, "asked: by a test"); left != 0 || err != nil {
		t.Fatal(left, err)
	}
	files, left := r.brought()
	if files["outputs/model.pt"] != "model\n" || files["outputs/last"] != "last\n" || left != "" {
		t.Errorf("%v, left %q", files, left)
	}
}

// While a run goes on, what it has written so far is here; and who comes before the pod
// has waited long enough has all, though nobody watched its end.
func TestWhoComesLateHasWhatAPodWrote(t *testing.T) {
	realCluster(t)
	life, j := jobOf(t, options.Machines{Kind: options.Job}, 1, writing+`while [ ! -e enough ]; do sleep 0.1; done; echo last >outputs/last`)
	j.Keep = []string{"outputs"}
	r := handIn(t, life, j)
	r.await()
	r.until("up")
	if files, left := r.brought(); files["outputs/model.pt"] != "model\n" || left != "" {
		t.Errorf("while it runs: %v, left %q", files, left)
	}
	one := r.replicas[0].(*replica)
	d, pod, err := one.running(r.soon())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := one.says(r.soon(), d, pod, "touch "+dirWork+"/code/enough"); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		if ended, err := one.hasEnded(r.soon(), d, pod); err == nil && ended {
			break
		} else if time.Now().After(until) {
			t.Fatal(ended, err)
		}
	}
	if state, err := one.State(r.soon()); err != nil || state.Phase != job.Running {
		t.Errorf("it waits as %+v, %v", state, err)
	}
	if files, left := r.brought(); files["outputs/last"] != "last\n" || left != "" {
		t.Errorf("after its end: %v, left %q", files, left)
	}
	if got := told(r.story(0)); got != "started rank-ended(0) ended(0)" {
		t.Error(got)
	}
}

// A pod does not wait for ever, and what went with it is said.
func TestWhatNobodyCameForIsSaidToBeLost(t *testing.T) {
	realCluster(t)
	life, j := jobOf(t, options.Machines{Kind: options.Job, Hold: "2s"}, 1, writing+`exit 3`)
	j.Keep = []string{"outputs"}
	r := handIn(t, life, j)
	r.await()
	one := r.replicas[0].(*replica)
	for until := time.Now().Add(30 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		if state, err := one.State(r.soon()); err == nil && state.Phase == job.Over {
			if state.Ranks[0].Code != 3 {
				t.Errorf("%+v", state)
			}
			break
		} else if time.Now().After(until) {
			t.Fatal(state, err)
		}
	}
	if files, left := r.brought(); len(files) != 0 || !strings.Contains(left, "machines.hold") {
		t.Errorf("%v, left %q", files, left)
	}
}

// until waits for a line in the log of replica 0.
func (r *running) until(line string) {
	r.Helper()
	ctx, cancel := context.WithCancel(r.soon())
	defer cancel()
	text := ""
	_ = r.replicas[0].FollowLog(ctx, "rank-0.log", "", func(c job.Chunk) error {
		if text += string(c.Data); strings.Contains(text, line) {
			cancel()
		}
		return nil
	})
	if !strings.Contains(text, line) {
		r.Fatalf("the log has no %q: %q", line, text)
	}
}

// A TFJob has its replicas by the tasks that TF_CONFIG gives them, each reached by the
// name that stands there.
func TestATFJobHasTheTasksOfItsTraining(t *testing.T) {
	realCluster(t)
	life, j := jobOf(t, options.Machines{}, 3, `python3 - <<'END'
import json, os, socket
c = json.loads(os.environ["TF_CONFIG"])
host, port = c["cluster"][c["task"]["type"]][c["task"]["index"]].split(":")
served = socket.create_server(("", int(port)))
others = [a for kind in c["cluster"].values() for a in kind]
import threading
def serve():
    while True: served.accept()
threading.Thread(target=serve, daemon=True).start()
import time
for a in others:
    while True:
        try: socket.create_connection(tuple(a.split(":")), 1); break
        except OSError: time.sleep(0.1)
print(c["task"]["type"], c["task"]["index"], len(others), flush=True)
time.sleep(2 if os.environ["RANK"] != "0" else 4)
END`)
	tasks := []string{`{"type":"chief","index":0}`, `{"type":"worker","index":0}`, `{"type":"worker","index":1}`}
	for i := range j.Procs {
		config := `{"cluster":{"chief":["` + job.HostOf(0) + `:29500"],"worker":["` + job.HostOf(1) + `:29501","` + job.HostOf(2) + `:29502"]},"task":` + tasks[i] + `}`
		j.Procs[i].Env = append(j.Procs[i].Env, "TF_CONFIG="+config)
	}
	r := handIn(t, life, j)
	if !strings.Contains(r.ref, `"kind":"tfjob"`) {
		t.Errorf("it became %s", r.ref)
	}
	logs, stories := r.all()
	for i, want := range []string{"chief 0 3\n", "worker 0 3\n", "worker 1 3\n"} {
		if logs[i] != want || stories[i] != "started rank-ended(0) ended(0)" {
			t.Errorf("replica %d: %q, %s", i, logs[i], stories[i])
		}
	}
	if receipt := r.down(); !hasKind(receipt, "tfjob") {
		t.Errorf("%+v", receipt.Resources)
	}
}
