//go:build linux

package kubernetes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/kubernetes/options"
	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/internal/kuberig"
	"github.com/dlwb/dlwb/internal/testprogram"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/workbench/atnode"
)

var shared struct {
	sync.Once
	cluster *kuberig.Cluster
	err     error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.cluster != nil {
		_ = shared.cluster.Stop()
	}
	os.Exit(code)
}

// realCluster is a real Kubernetes with Kubeflow's operators, KubeRay and Kueue; all tests
// have one.
func realCluster(t *testing.T) *kuberig.Cluster {
	t.Helper()
	if why := kuberig.Missing(); why != "" {
		t.Skip(why)
	}
	shared.Do(func() { shared.cluster, shared.err = kuberig.Start("kubeflow,mpi,trainer,kuberay,kueue") })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	t.Setenv("KUBECONFIG", shared.cluster.Kubeconfig)
	return shared.cluster
}

// running is a job of a test.
type running struct {
	*testing.T
	p        *Provider
	life     cloud.Life
	job      cloud.Job
	ref      string
	replicas []job.Replica
}

var lives int

// jobOf is a job whose ranks each run a script of sh.
func jobOf(t *testing.T, m options.Machines, replicas int, script string) (cloud.Life, cloud.Job) {
	t.Helper()
	lives++
	dir := t.TempDir()
	life := cloud.Life{Name: "test", ID: fmt.Sprintf("%06x%06x", lives, time.Now().UnixNano()&0xffffff), Began: time.Now(), Dir: t.TempDir()}
	if err := testprogram.Write(filepath.Join(dir, "train.sh"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	j := cloud.Job{Run: fmt.Sprintf("test-%s", life.ID), Replicas: replicas, Command: []string{"sh", "train.sh"}, Env: []string{"TOKEN=hush $(HOME) 'quoted'"},
		Code: cloud.Code{Dir: dir, Paths: []string{"train.sh"}}, Spec: cloud.Spec{Name: "test", Count: replicas, Own: &m, Lifetime: time.Hour}}
	for i := range replicas {
		env := []string{"RANK=" + fmt.Sprint(i), "MASTER_ADDR=" + job.HostOf(0), "WORLD_SIZE=" + fmt.Sprint(replicas)}
		j.Ranks = append(j.Ranks, cloud.JobRank{Rank: i, Replica: i, Env: env})
		j.Procs = append(j.Procs, cloud.JobProc{Replica: i, Name: fmt.Sprintf("rank-%d", i), Ranks: []int{i}, Env: env,
			Argv: append([]string{"sh", "~/.dlwb/bin/rank", "~/.dlwb/runs/x"}, j.Command...), Log: fmt.Sprintf("rank-%d.log", i)})
	}
	return life, j
}

// submit hands a job in.
func submit(t *testing.T, m options.Machines, replicas int, script string) *running {
	t.Helper()
	life, j := jobOf(t, m, replicas, script)
	return handIn(t, life, j)
}

func handIn(t *testing.T, life cloud.Life, j cloud.Job) *running {
	t.Helper()
	r := &running{T: t, p: New(), life: life, job: j}
	t.Cleanup(func() { r.down() })
	made, err := r.p.Submit(t.Context(), life, j, r.step, r.say)
	if err != nil {
		t.Fatal(err)
	}
	r.ref, r.replicas = made.Ref, r.p.Open(life, made.Ref)
	return r
}

func (r *running) step(step, text string) { r.Logf("step %s: %s", step, text) }
func (r *running) say(_ int, text string) { r.Logf("  %s", text) }
func (r *running) soon() context.Context  { return r.within(time.Minute) }
func (r *running) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	r.Cleanup(cancel)
	return ctx
}

func (r *running) await() {
	r.Helper()
	if err := r.p.Await(r.soon(), r.life, r.ref, r.step, r.say); err != nil {
		r.Fatal(err)
	}
}

// story watches a replica to its end.
func (r *running) story(number int) (all []job.Status) {
	r.Helper()
	err := r.replicas[number].WatchStatus(r.soon(), func(s job.Status) error { all = append(all, s); return nil }, func(job.State) {})
	if err != nil {
		r.Errorf("replica %d: %v after %s", number, err, told(all))
	}
	return all
}

// log follows the log of a rank until it has ended, from a cursor on.
func (r *running) log(number int, from job.Cursor) (string, job.Cursor) {
	r.Helper()
	var b bytes.Buffer
	at := from
	err := r.replicas[number].FollowLog(r.soon(), fmt.Sprintf("rank-%d.log", r.firstOf(number)), from, func(c job.Chunk) error {
		if c.From != at {
			return fmt.Errorf("a piece from %q came where %q was next", c.From, at)
		}
		at = c.Next
		b.Write(c.Data)
		return nil
	})
	if err != nil {
		r.Errorf("the log of replica %d: %v after %q", number, err, b.String())
	}
	return b.String(), at
}

// firstOf is the first rank of a replica.
func (r *running) firstOf(number int) int {
	return r.job.Ranks[slices.IndexFunc(r.job.Ranks, func(one cloud.JobRank) bool { return one.Replica == number })].Rank
}

// all follows the logs and the stories of all replicas from before their beginning: an
// operator may delete a pod at its end, with its log, and on a busy machine that may be
// over by the time when somebody who has waited for the beginning looks.
func (r *running) all() (logs, stories []string) {
	r.Helper()
	logs, stories = make([]string, len(r.replicas)), make([]string, len(r.replicas))
	var every sync.WaitGroup
	for i := range r.replicas {
		every.Go(func() { logs[i], _ = r.log(i, "") })
		every.Go(func() { stories[i] = told(r.story(i)) })
	}
	r.await()
	every.Wait()
	return logs, stories
}

// down takes the life down and holds that nothing of it is left.
func (r *running) down() cloud.Receipt {
	r.Helper()
	receipt, err := r.p.Down(r.within(3*time.Minute), r.life, func(int, string) {})
	if err != nil || !receipt.Proven() {
		r.Errorf("down: %v, %+v", err, receipt)
	}
	for _, kind := range []string{"pods", "configmaps", "secrets", "services", "jobs.v1.batch", "pytorchjobs.v1.kubeflow.org", "mpijobs.v2beta1.kubeflow.org", "trainjobs.v1alpha1.trainer.kubeflow.org", "jobsets.v1alpha2.jobset.x-k8s.io", "rayjobs.v1.ray.io", "rayclusters.v1.ray.io"} {
		list, err := shared.cluster.Resource(kind, "").List(context.Background(), meta.ListOptions{})
		if err != nil {
			r.Error(err)
			continue
		}
		for _, o := range list.Items {
			if strings.HasPrefix(o.GetName(), nameOf(r.job.Run)) {
				r.Errorf("%s %s is left", kind, o.GetName())
			}
		}
	}
	return receipt
}

// meet has two ranks wait for each other, as those of a training do: an operator ends
// workers that have not begun when the master is through.
const meet = `python3 -c 'import os, socket, time
if os.environ["RANK"] == "0": socket.create_server(("", 29500)).accept()
else:
  while True:
    try: socket.create_connection((os.environ["MASTER_ADDR"], 29500), 1); break
    except OSError: time.sleep(0.1)'
`

// Each kind of object: the ranks know their places and their secret, each log comes
// whole, and nothing is left.
func TestAJobOfEachKindRunsWithItsCodeItsSecretAndItsLogs(t *testing.T) {
	realCluster(t)
	for _, kind := range []string{options.PyTorchJob, options.TrainJob, options.Job} {
		t.Run(kind, func(t *testing.T) {
			r := submit(t, options.Machines{Kind: kind, GPUs: 1}, 2, meet+`echo "rank $RANK of $WORLD_SIZE, $TOKEN"
getent hosts "$MASTER_ADDR" >/dev/null && echo found the master
grep -c . train.sh; pwd; printf 'no newline'`)
			logs, stories := r.all()
			for i := range 2 {
				want := fmt.Sprintf("rank %d of 2, hush $(HOME) 'quoted'\nfound the master\n9\n/dlwb/work/code\nno newline", i)
				if logs[i] != want {
					t.Errorf("the log of rank %d is %q, not %q", i, logs[i], want)
				}
				if stories[i] != "started rank-ended(0) ended(0)" {
					t.Errorf("replica %d: %s", i, stories[i])
				}
			}
			receipt := r.down()
			for _, want := range []string{kind, "pod", "configmap", "secret"} {
				if !hasKind(receipt, want) {
					t.Errorf("the receipt has no %s: %+v", want, receipt.Resources)
				}
			}
		})
	}
}

func hasKind(r cloud.Receipt, kind string) bool {
	for _, res := range r.Resources {
		if res.Kind == kind {
			return true
		}
	}
	return false
}

// The secret's value stands nowhere but in the Secret.
func TestASecretStandsInNoOtherObject(t *testing.T) {
	c := realCluster(t)
	r := submit(t, options.Machines{Kind: options.PyTorchJob}, 2, "sleep 30")
	r.await()
	for _, kind := range []string{"pods", "configmaps", "pytorchjobs.v1.kubeflow.org", "events"} {
		list, err := c.Resource(kind, "default").List(t.Context(), meta.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		text, err := list.MarshalJSON()
		if err != nil || bytes.Contains(text, []byte("hush")) {
			t.Errorf("%s have the secret, or %v", kind, err)
		}
	}
}

// How a run ends in each way that a cluster knows, and what another dlwb is told
// that comes later.
func TestEachEndHasItsVerdict(t *testing.T) {
	c := realCluster(t)
	wait := `trap 'echo got TERM; exit 0' TERM
echo up; while :; do sleep 0.1; done`
	for _, kind := range []string{options.PyTorchJob, options.Job} {
		m := options.Machines{Kind: kind}
		t.Run(kind, func(t *testing.T) {
			t.Run("a rank exits with 3", func(t *testing.T) {
				r := submit(t, m, 2, `[ $RANK = 0 ] || { sleep 1; exit 3; }; `+wait)
				r.await()
				r.holds(1, "started rank-ended(3) ended(3)")
			})
			t.Run("killed by a signal", func(t *testing.T) {
				r := submit(t, m, 2, `[ $RANK = 0 ] || kill -SEGV $$; sleep 20`)
				r.await()
				r.holds(1, "started rank-ended(139SEGV) ended(139)")
			})
			t.Run("out of memory", func(t *testing.T) {
				r := submit(t, m, 1, `echo up; sleep 2; kill -KILL $$`)
				r.await()
				if err := os.WriteFile(filepath.Join(c.Pods(), r.pod(0).uid, "oom-"+kindNamed(kind).container), nil, 0o600); err != nil {
					t.Fatal(err)
				}
				r.holds(0, "started rank-starved(1) rank-ended(137KILL) ended(137)")
			})
			t.Run("stopped", func(t *testing.T) {
				r := submit(t, m, 2, wait)
				r.await()
				watched := make(chan []job.Status, 1)
				go func() {
					var all []job.Status
					_ = r.replicas[1].WatchStatus(r.soon(), func(s job.Status) error { all = append(all, s); return nil }, func(job.State) {})
					watched <- all
				}()
				if left, err := r.replicas[0].Stop(r.soon(), 10*time.Second, "asked: by a test"); left != 0 || err != nil {
					t.Fatal(left, err)
				}
				if got := told(<-watched); !strings.HasPrefix(got, "started stopping(asked: by a test) rank-ended(0) ended(0)") {
					t.Error(got)
				}
				if got := told((&running{T: t, p: New(), life: r.life, replicas: New().Open(cloud.Life{Dir: t.TempDir()}, r.ref), job: r.job}).story(0)); !strings.Contains(got, "stopping(asked: by a test)") {
					t.Errorf("who knows nothing is told: %s", got)
				}
			})
			t.Run("deadline", func(t *testing.T) {
				life, j := jobOf(t, m, 1, wait)
				j.Spec.Lifetime = 3 * time.Second
				r := handIn(t, life, j)
				r.await()
				if got := told(r.story(0)); !strings.Contains(got, "stopping(limit: the job had its time") {
					t.Error(got)
				}
			})
			t.Run("deleted by somebody", func(t *testing.T) {
				r := submit(t, m, 1, wait)
				r.await()
				all := meta.DeletePropagationForeground
				if err := c.Resource(kindNamed(kind).resource.Resource+"."+kindNamed(kind).resource.Version+"."+kindNamed(kind).resource.Group, "default").
					Delete(t.Context(), nameOf(r.job.Run), meta.DeleteOptions{PropagationPolicy: &all}); err != nil {
					t.Fatal(err)
				}
				if got := told(r.story(0)); !strings.Contains(got, "stopping(cancelled: the job was deleted in the cluster)") {
					t.Error(got)
				}
			})
		})
	}
}

// holds holds the story of a replica, also as another dlwb is told it later.
func (r *running) holds(number int, want string) {
	r.Helper()
	if got := told(r.story(number)); got != want {
		r.Errorf("replica %d: %s, not %s", number, got, want)
	}
	later := New().Open(r.life, r.ref)[number]
	state, err := later.State(r.soon())
	if err != nil || state.Phase != job.Over {
		r.Errorf("later it is %+v, %v", state, err)
	}
}

type podFact struct{ name, uid string }

// pod is the pod of a replica.
func (r *running) pod(number int) podFact {
	r.Helper()
	d, err := r.replicas[number].(*replica).door()
	if err != nil {
		r.Fatal(err)
	}
	pod, err := r.replicas[number].(*replica).pod(r.soon(), d)
	if err != nil || pod == nil {
		r.Fatal(pod, err)
	}
	return podFact{pod.Name, string(pod.UID)}
}

// A job is submitted by name: a second call, and one of another process, find the
// first.
func TestSubmitAndFindKnowAJobAgain(t *testing.T) {
	c := realCluster(t)
	r := submit(t, options.Machines{}, 2, "sleep 20")
	again, err := New().Submit(t.Context(), r.life, r.job, r.step, r.say)
	if err != nil || again.Ref != r.ref {
		t.Errorf("%+v, %v", again, err)
	}
	found, err := New().Find(t.Context(), r.life, r.job.Run, cloud.Untold)
	if err != nil || found.Ref != r.ref {
		t.Errorf("%+v, %v", found, err)
	}
	if none, err := New().Find(t.Context(), r.life, "another", cloud.Untold); err != nil || none.Ref != "" {
		t.Errorf("%+v, %v", none, err)
	}
	list, err := c.Resource("pytorchjobs.v1.kubeflow.org", "default").List(t.Context(), meta.ListOptions{LabelSelector: labelLife + "=" + r.life.ID})
	if err != nil || len(list.Items) != 1 {
		t.Errorf("%d jobs, %v: the first kind that is alive is a PyTorchJob", len(list.Items), err)
	}
}

// With the agent a pod has what a node has: commands, ports, what its machine does.
func TestAgentReachesAPod(t *testing.T) {
	realCluster(t)
	r := submit(t, options.Machines{GPUs: 1}, 1, `python3 -m http.server 6006 --bind 127.0.0.1`)
	r.await()
	node := remote.OpenOver("pod", atnode.Into(r.replicas[0].(job.Entrance)))
	t.Cleanup(func() { _ = node.Close() })
	inside := atnode.Run{Node: node}
	out, err := inside.Output(r.soon(), "echo out; echo err >&2; exit 7")
	if err != nil || string(out) != "out\n" {
		t.Errorf("%q, %v", out, err)
	}
	long := strings.Repeat("0123456789", 100_000)
	fed, err := node.Exec(r.soon(), remote.Cmd{Line: "wc -c; pwd; cat /proc/1/comm", Stdin: strings.NewReader(long)})
	if err != nil || !strings.HasPrefix(string(fed.Stdout), "1000000\n") {
		t.Errorf("%q, %v", fed.Stdout, err)
	}
	if err := answers(r.soon(), inside, "127.0.0.1:6006"); err != nil {
		t.Error(err)
	}
	if err := answers(r.within(5*time.Second), inside, "127.0.0.1:7777"); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("a port without anybody: %v", err)
	}
	if err := answers(r.soon(), inside, "127.0.0.1:6006"); err != nil {
		t.Errorf("after one that was refused: %v", err)
	}
	ctx, enough := context.WithCancel(r.soon())
	var frames []string
	_ = inside.Telemetry(ctx, job.NewPace(), func(f []byte) {
		if frames = append(frames, string(f)); strings.Contains(frames[len(frames)-1], "SIMULATED GPU") {
			enough()
		}
	})
	if len(frames) == 0 || !strings.Contains(frames[len(frames)-1], "SIMULATED GPU, 37") {
		t.Errorf("the telemetry is\n%s", strings.Join(frames, "\n"))
	}
}

// answers asks an HTTP server of a pod, again while it is not there yet.
func answers(ctx context.Context, dial job.Dialer, addr string) (err error) {
	for ctx.Err() == nil {
		if err = ask(ctx, dial, addr); err == nil {
			return nil
		}
		time.Sleep(200 * time.Millisecond)
	}
	return err
}

func ask(ctx context.Context, dial job.Dialer, addr string) error {
	conn, err := dial.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := fmt.Fprint(conn, "GET / HTTP/1.0\r\n\r\n"); err != nil {
		return err
	}
	buf := make([]byte, 15)
	if _, err := conn.Read(buf); err != nil {
		return err
	}
	if !bytes.HasPrefix(buf, []byte("HTTP/1.")) || !bytes.Contains(buf, []byte(" 200")) {
		return errors.New(string(buf))
	}
	return nil
}
