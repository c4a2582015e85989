//go:build linux

package kubernetes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/kubernetes/options"
	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/remote/engine"
	"github.com/dlwb/dlwb/workbench/atnode"
)

// rayJobOf is a job of Ray whose driver runs a script of sh, with so many pods beside
// its head.
func rayJobOf(t *testing.T, m options.Machines, pods int, script string) (cloud.Life, cloud.Job) {
	t.Helper()
	life, made := jobOf(t, m, pods, script)
	nodes := make([]engine.Node, pods)
	if pods > 1 {
		nodes = append([]engine.Node{{Head: true}}, nodes...)
	}
	plan := laidOn(t, "ray", nodes, engine.Job{Command: []string{"sh", "train.sh"}, Given: true})
	made.Engine, made.Command, made.Procs, made.Ranks, made.Replicas = plan.Engine, plan.Command, plan.Procs, plan.Ranks, len(nodes)
	made.Spec.Engine, made.Spec.HasEnv = plan.Engine, true
	return life, made
}

func rayRun(t *testing.T, m options.Machines, pods int, script string) *running {
	t.Helper()
	realCluster(t)
	life, j := rayJobOf(t, m, pods, script)
	r := handIn(t, life, j)
	r.await()
	return r
}

// stories are those of all replicas, watched side by side.
func (r *running) stories() []string {
	r.Helper()
	all := make([]string, len(r.replicas))
	var every sync.WaitGroup
	for i := range r.replicas {
		every.Go(func() { all[i] = told(r.story(i)) })
	}
	every.Wait()
	return all
}

// inPod runs a line of sh in the pod in which a replica works.
func (r *running) inPod(number int, line string) {
	r.Helper()
	one := r.replicas[number].(*replica)
	d, pod, err := one.running(r.soon())
	if err == nil {
		_, err = one.says(r.soon(), d, pod, line)
	}
	if err != nil {
		r.Fatal(err)
	}
}

// A RayJob of the real operator: the driver has its code, its secret and its results, its
// log comes byte for byte, and nothing of the cluster is left.
func TestARayJobRunsWithItsCodeItsSecretAndItsLog(t *testing.T) {
	realCluster(t)
	life, j := rayJobOf(t, options.Machines{GPUs: 1}, 2, `echo "rank $RANK of $DLWB_WORKERS workers, $TOKEN"; pwd; grep -c . train.sh
printf '10%%\r20%%\n'; printf 'bytes \377\376\n'; mkdir -p outputs; echo model >outputs/model.pt; echo of the head >"$DLWB_RESULTS/notes"; printf 'no newline'`)
	j.Keep = []string{"outputs/"}
	r := handIn(t, life, j)
	var log string
	var stories []string
	r.await()
	r.inPod(1, "echo of a worker >"+dirWork+"/.dlwb-node/notes")
	var every sync.WaitGroup
	every.Go(func() { log, _ = r.log(0, "") })
	every.Go(func() { stories = r.stories() })
	every.Wait()
	if want := "rank 0 of 2 workers, hush $(HOME) 'quoted'\n/dlwb/work/code\n2\n10%\r20%\nbytes \xff\xfe\nno newline"; log != want {
		t.Errorf("the log is %q, not %q", log, want)
	}
	for i, want := range []string{"started rank-ended(0) ended(0)", "started ended(0)", "started ended(0)"} {
		if stories[i] != want {
			t.Errorf("replica %d: %s, not %s", i, stories[i], want)
		}
	}
	for i, want := range []string{"ray start --head", "ray start ", "ray start "} {
		text := ""
		_ = r.replicas[i].FollowLog(r.within(20*time.Second), rayLog, "", func(c job.Chunk) error {
			if text += string(c.Data); strings.Contains(text, want) {
				return context.Canceled
			}
			return nil
		})
		if !strings.Contains(text, want) {
			t.Errorf("the log of replica %d's Ray is %q", i, text)
		}
	}
	files, left := r.brought()
	if files["outputs/model.pt"] != "model\n" || files["node0/notes"] != "of the head\n" || files["node1/notes"] != "of a worker\n" || left != "" {
		t.Errorf("%v, left %q", files, left)
	}
	receipt := r.down()
	for _, want := range []string{options.RayJob, "raycluster", "job", "pod", "service", "configmap", "secret"} {
		if !hasKind(receipt, want) {
			t.Errorf("the receipt has no %s: %+v", want, receipt.Resources)
		}
	}
}

// One pod alone is the head, with the GPUs.
func TestARayJobOfOnePodIsItsHead(t *testing.T) {
	r := rayRun(t, options.Machines{GPUs: 2}, 1, `echo up; sleep 2`)
	if len(r.replicas) != 1 {
		t.Fatal(len(r.replicas))
	}
	r.holds(0, "started rank-ended(0) ended(0)")
	if log, _ := r.log(0, ""); log != "up\n" {
		t.Errorf("%q", log)
	}
}

// How a RayJob ends in each way that the cluster knows.
func TestEachEndOfARayJobHasItsVerdict(t *testing.T) {
	c := realCluster(t)
	wait := `trap 'echo got TERM; echo last >outputs/last; exit 0' TERM
mkdir -p outputs; echo up; while :; do sleep 0.1; done`
	m := options.Machines{}
	t.Run("the driver exits with 3", func(t *testing.T) {
		r := rayRun(t, m, 2, `echo up; sleep 1; exit 3`)
		r.holds(0, "started rank-ended(3) ended(3)")
	})
	t.Run("killed by a signal", func(t *testing.T) {
		r := rayRun(t, m, 1, `echo up; sleep 1; kill -SEGV $$`)
		r.holds(0, "started rank-ended(139SEGV) ended(139)")
	})
	t.Run("stopped", func(t *testing.T) {
		life, j := rayJobOf(t, m, 2, wait)
		j.Keep = []string{"outputs"}
		r := handIn(t, life, j)
		r.await()
		r.until("up")
		if left, err := r.replicas[1].Stop(r.within(2*time.Minute), 20*time.Second, "asked: by a test"); left != 0 || err != nil {
			t.Fatal(left, err)
		}
		if got := told(r.story(0)); got != "started stopping(asked: by a test) rank-ended(0) ended(0)" && !strings.HasPrefix(got, "started stopping(asked: by a test) rank-ended(143") {
			t.Error(got)
		}
		if log, _ := r.log(0, ""); !strings.Contains(log, "got TERM") {
			t.Errorf("the driver was not told: %q", log)
		}
	})
	t.Run("does not end when it is asked", func(t *testing.T) {
		r := rayRun(t, m, 1, `trap '' TERM; echo up; while :; do sleep 0.1; done`)
		r.until("up")
		if left, err := r.replicas[0].Stop(r.within(2*time.Minute), time.Second, "asked: by a test"); left != 0 || err != nil {
			t.Fatal(left, err)
		}
		if got := told(r.story(0)); got != "started stopping(asked: by a test) rank-ended(143TERM) ended(143)" {
			t.Error(got)
		}
	})
	t.Run("can't be handed in", func(t *testing.T) {
		life, j := rayJobOf(t, m, 1, wait)
		j.Env = append(j.Env, "RIG_REFUSES=yes")
		r := handIn(t, life, j)
		r.await()
		if got := told(r.story(0)); !strings.Contains(got, "stopping(failed: the driver could not be handed to Ray") || !strings.Contains(got, "ray job submit exited with code 1") {
			t.Error(got)
		}
	})
	t.Run("deadline", func(t *testing.T) {
		life, j := rayJobOf(t, m, 1, wait)
		j.Spec.Lifetime = 15 * time.Second
		r := handIn(t, life, j)
		r.await()
		if got := told(r.story(0)); !strings.Contains(got, "stopping(limit: the job had its time") {
			t.Error(got)
		}
	})
	t.Run("deleted from elsewhere", func(t *testing.T) {
		r := rayRun(t, m, 1, wait)
		r.until("up")
		watched := make(chan string, 1)
		go func() { watched <- told(r.story(0)) }()
		if err := c.Resource("rayjobs.v1.ray.io", "default").Delete(t.Context(), nameOf(r.job.Run), meta.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := <-watched; !strings.Contains(got, "stopping(cancelled: ") {
			t.Error(got)
		}
	})
	t.Run("a worker runs out of memory", func(t *testing.T) {
		r := rayRun(t, m, 2, `echo up; while [ ! -e enough ]; do sleep 0.1; done; exit 1`)
		r.until("up")
		watched := make(chan string, 1)
		go func() { watched <- told(r.story(0)) }()
		worker := r.pod(1)
		if err := os.WriteFile(filepath.Join(c.Pods(), worker.uid, "oom-ray"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		r.inPod(1, "kill -TERM 1")
		r.untilPod(1, func(p *core.Pod) bool { return ending(containerOf(p, "ray")) != nil })
		r.inPod(0, "touch enough || touch "+dirWork+"/code/enough")
		if got := <-watched; got != "started rank-starved(1) rank-ended(1) ended(1)" {
			t.Error(got)
		}
	})
	t.Run("the head is lost", func(t *testing.T) {
		r := rayRun(t, m, 1, wait)
		r.until("up")
		watched := make(chan string, 1)
		go func() { watched <- told(r.story(0)) }()
		r.inPod(0, "touch "+dirWork+"/brought") // nothing is to be waited for
		if err := os.WriteFile(filepath.Join(c.Pods(), r.placed(0).uid, "oom-ray"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		r.inPod(0, "rm -f "+dirWork+"/driver.pid; kill -TERM 1")
		if got := <-watched; !strings.Contains(got, "stopping(memory: pod ") {
			t.Error(got)
		}
	})
}

// placed is the pod in which a replica works.
func (r *running) placed(number int) podFact {
	r.Helper()
	one := r.replicas[number].(*replica)
	d, pod, err := one.running(r.soon())
	if err != nil {
		r.Fatal(d, err)
	}
	return podFact{pod.Name, string(pod.UID)}
}

// untilPod waits until the pod of a replica is as it should be.
func (r *running) untilPod(number int, is func(*core.Pod) bool) {
	r.Helper()
	one := r.replicas[number].(*replica)
	for until := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		d, err := one.door()
		if err != nil {
			r.Fatal(err)
		}
		if pod, err := one.pod(r.soon(), d); err == nil && pod != nil && is(pod) {
			return
		} else if time.Now().After(until) {
			r.Fatal(pod, err)
		}
	}
}

// While a RayJob runs, its head is a node, and Ray's dashboard is reached there.
func TestTheDashboardOfARayJobIsReached(t *testing.T) {
	r := rayRun(t, options.Machines{GPUs: 1}, 2, `echo up; while :; do sleep 0.1; done`)
	node := remote.OpenOver("pod", atnode.Into(r.replicas[0].(job.Entrance)))
	t.Cleanup(func() { _ = node.Close() })
	if err := answers(r.soon(), atnode.Run{Node: node}, "127.0.0.1:8265"); err != nil {
		t.Error(err)
	}
	again, err := New().Submit(t.Context(), r.life, r.job, r.step, r.say)
	if err != nil || again.Ref != r.ref {
		t.Errorf("handed in again: %+v, %v", again, err)
	}
	found, err := New().Find(t.Context(), r.life, r.job.Run, cloud.Untold)
	if err != nil || found.Ref != r.ref {
		t.Errorf("%+v, %v", found, err)
	}
}

// What a RayJob waits for is said, with the pod and the reason.
func TestWhatARayJobWaitsForIsTold(t *testing.T) {
	realCluster(t)
	for name, c := range map[string]struct {
		m    options.Machines
		pods int
		want string
	}{
		"GPUs":  {options.Machines{GPUs: 3}, 2, "2 of 3 pods run and hold what they have; no node takes "},
		"image": {options.Machines{}, 1, "can't be pulled"},
	} {
		t.Run(name, func(t *testing.T) {
			life, j := rayJobOf(t, c.m, c.pods, "true")
			if name == "image" {
				j.Spec.Image = "missing/ray:2.54.0"
			}
			r := handIn(t, life, j)
			ctx, enough := context.WithTimeout(t.Context(), time.Minute)
			defer enough()
			said := ""
			hear := func(text string) {
				if said += text + "\n"; strings.Contains(said, c.want) {
					enough()
				}
			}
			_ = r.p.Await(ctx, life, r.ref, func(_, text string) { hear(text) }, func(_ int, text string) { hear(text) })
			if !strings.Contains(said, c.want) {
				t.Errorf("it said\n%s", said)
			}
		})
	}
}

// Without its operator a RayJob that is deleted stays, and that is said: it is not gone.
func TestARayJobWithoutItsOperatorIsNotCalledGone(t *testing.T) {
	c := realCluster(t)
	r := rayRun(t, options.Machines{}, 1, `sleep 600`)
	c.Signal(t, "kuberay", syscall.SIGSTOP)
	cont := func() { c.Signal(t, "kuberay", syscall.SIGCONT) }
	defer cont()
	was := downLimit
	downLimit = time.Minute
	receipt, err := r.p.Down(r.within(3*time.Minute), r.life, func(int, string) {})
	downLimit = was
	if err != nil || receipt.Proven() {
		t.Errorf("%v, %+v", err, receipt)
	}
	said := false
	for _, res := range receipt.Resources {
		if res.Kind == options.RayJob {
			said = res.State != cloud.Gone && strings.Contains(res.Proof, "ray.io/rayjob-finalizer") && strings.Contains(res.Proof, "does the operator run?")
		} else if res.Kind == "pod" && res.State != cloud.Gone {
			t.Errorf("pod %s is left", res.ID)
		}
	}
	if !said {
		t.Errorf("%+v", receipt.Resources)
	}
}

// Before anything is made, all pods of a RayJob are tried.
func TestWhatStandsInTheWayOfARayJobIsNamedBefore(t *testing.T) {
	c := realCluster(t)
	c.Apply(t, namespaceTeam)
	check := func(m options.Machines, pods int) string {
		var b strings.Builder
		began := time.Now()
		for _, f := range New().Check(t.Context(), cloud.Spec{Name: "test", Count: pods, Engine: "ray", Own: &m}).Findings {
			fmt.Fprintf(&b, "%s %s: %s; %s\n", f.Mark(), f.What, f.Text, f.Next)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %s", took)
		}
		return b.String()
	}
	for name, k := range map[string]struct {
		m       options.Machines
		pods    int
		prepare func(t *testing.T)
		want    []string
	}{
		"nothing":       {options.Machines{GPUs: 2}, 2, nil, []string{"the job becomes a RayJob", "✓ dry run: the cluster takes the RayJob and its pods, of the image rayproject/ray:2.54.0-gpu", "✓ gpus", "! image: the profile names no image with Ray"}},
		"another kind":  {options.Machines{Kind: options.PyTorchJob}, 2, nil, []string{"✗ kind: Ray's head and its workers can't be the pods of a PyTorchJob", "machines.kind: rayjob or job"}},
		"a plain Job":   {options.Machines{Kind: options.Job, GPUs: 2}, 2, nil, []string{"✓ operator: the job becomes a Job: ", "Ray's head and its workers run in its pods, without KubeRay", "✓ dry run: the cluster takes the Job and its pods, of the image rayproject/ray:2.54.0-gpu"}},
		"too many GPUs": {options.Machines{GPUs: 2}, 3, nil, []string{"✗ gpus: 2 pods of 2 GPUs fit on the nodes, were they all free, and the job has 3"}},
		"quota": {options.Machines{Namespace: "team", GPUs: 1}, 2, func(t *testing.T) { c.Apply(t, quotaTeam); time.Sleep(time.Second) },
			[]string{"✗ quota: 4 pods need 2 of requests.nvidia.com/gpu, and quota gpus allows 1 in all"}},
		"operator": {options.Machines{Kind: options.RayJob}, 2, func(t *testing.T) {
			c.Apply(t, strings.NewReplacer("control-plane: kubeflow-training-operator", "app.kubernetes.io/component: kuberay-operator", "training-operator", "kuberay-operator").Replace(deadOperator))
		},
			[]string{"✗ operator: nobody acts on a RayJob: kuberay-operator in namespace kubeflow has no pod that is ready", "machines.kind: job needs none"}},
		"another that needs none": {options.Machines{}, 2, func(t *testing.T) {
			c.Apply(t, strings.NewReplacer("control-plane: kubeflow-training-operator", "app.kubernetes.io/component: kuberay-operator", "training-operator", "kuberay-operator").Replace(deadOperator))
		},
			[]string{"✓ operator: the job becomes a Job: ", "without KubeRay"}},
		"rights": {options.Machines{Context: "tenant", Kind: options.RayJob}, 2, nil, []string{"✗ rights: you may not create rayjobs.ray.io, get rayjobs.ray.io", "create configmaps"}},
	} {
		t.Run(name, func(t *testing.T) {
			if k.prepare != nil {
				k.prepare(t)
			}
			said := check(k.m, k.pods)
			for _, want := range k.want {
				if !strings.Contains(said, want) {
					t.Errorf("%q is not in\n%s", want, said)
				}
			}
		})
	}
}

// A worker that was evicted takes the run with it, if the driver can't go on.
func TestARayJobThatLosesAWorkerIsLost(t *testing.T) {
	c := realCluster(t)
	r := rayRun(t, options.Machines{}, 2, `echo up; while [ ! -e enough ]; do sleep 0.1; done; exit 1`)
	r.until("up")
	watched := make(chan string, 1)
	go func() { watched <- told(r.story(0)) }()
	one := r.replicas[0].(*replica)
	r.until("up")
	pod := r.pod(1).name
	evict := fmt.Sprintf(`{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": %q, "namespace": "default"}}`, pod)
	if err := c.Post(t.Context(), "/api/v1/namespaces/default/pods/"+pod+"/eviction", evict); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(time.Minute); one.lossesOf(nil).Taken[pod] == ""; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("nobody has seen that it was evicted")
		}
	}
	r.inPod(0, "touch "+dirWork+"/code/enough")
	if got := <-watched; !strings.Contains(got, "stopping(lost: pod "+pod+" was ended: its node was drained") {
		t.Error(got)
	}
}

// Kueue admits a RayJob that fits, and says of one that is too large that it never will.
func TestARayJobWaitsInItsQueue(t *testing.T) {
	c := realCluster(t)
	c.Apply(t, queues)
	r := rayRun(t, options.Machines{GPUs: 1, Queue: "gpus"}, 1, "echo up; sleep 1")
	r.holds(0, "started rank-ended(0) ended(0)")
	r.down()
	life, j := rayJobOf(t, options.Machines{GPUs: 2, Queue: "gpus"}, 1, "true")
	large := handIn(t, life, j)
	if err := large.p.Await(large.soon(), life, large.ref, large.step, large.say); err == nil || !strings.Contains(err.Error(), "can never admit it") {
		t.Error(err)
	}
}
