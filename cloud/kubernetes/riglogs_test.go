//go:build linux

package kubernetes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/kubernetes/options"
	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/internal/kuberig"
)

// wire stands between a test and the API server, and can be cut.
type wire struct {
	mu    sync.Mutex
	conns []net.Conn
}

// cut ends all connections.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		_ = c.Close()
	}
	w.conns = nil
}

// through has the kubeconfig of the test go through a wire.
func through(t *testing.T, c *kuberig.Cluster) *wire {
	t.Helper()
	text, err := os.ReadFile(c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), `server: "`)
	server, _, _ := strings.Cut(rest, `"`)
	to, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	w := &wire{}
	t.Cleanup(w.cut)
	go func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			b, err := net.Dial("tcp4", to.Host)
			if err != nil {
				_ = a.Close()
				continue
			}
			w.mu.Lock()
			w.conns = append(w.conns, a, b)
			w.mu.Unlock()
			go func() { _, _ = io.Copy(a, b); _ = a.Close() }()
			go func() { _, _ = io.Copy(b, a); _ = b.Close() }()
		}
	}()
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), server, "https://"+l.Addr().String())), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
	return w
}

// Ten cuts of everything, with two ranks in a pod whose output lies mixed in one
// log, and a reader that is another process from the fifth on: no byte is lost and
// none comes twice.
func TestNoByteOfALogIsLostOrDoubledOverCuts(t *testing.T) {
	w := through(t, realCluster(t))
	life, j := jobOf(t, options.Machines{Kind: options.Job}, 1, `i=0
while [ $i -lt 4000 ]; do i=$((i + 1)); echo "rank $RANK line $i"; [ $((i % 25)) != 0 ] || sleep 0.05; done
printf 'the end without a newline'`)
	second := j.Procs[0]
	second.Name, second.Ranks, second.Env, second.Log = "rank-1", []int{1}, []string{"RANK=1"}, "rank-1.log"
	j.Procs = append(j.Procs, second)
	j.Ranks = append(j.Ranks, cloud.JobRank{Rank: 1, Replica: 0, Env: second.Env})
	r := handIn(t, life, j)
	r.await()
	over := make(chan struct{})
	go func() {
		for range 10 {
			time.Sleep(700 * time.Millisecond)
			w.cut()
		}
		close(over)
	}()
	var all sync.WaitGroup
	for rank := range 2 {
		all.Go(func() {
			var b bytes.Buffer
			at, pieces, dropped := job.Cursor(""), 0, errors.New("another process goes on")
			for followed := dropped; errors.Is(followed, dropped); {
				followed = New().Open(r.life, r.ref)[0].FollowLog(r.soon(), fmt.Sprintf("rank-%d.log", rank), at, func(c job.Chunk) error {
					if c.From != at {
						return fmt.Errorf("a piece from %q came where %q was next", c.From, at)
					}
					if pieces++; pieces%1500 == 0 {
						return dropped // and it is not taken
					}
					at = c.Next
					b.Write(c.Data)
					return nil
				})
				if followed != nil && !errors.Is(followed, dropped) {
					t.Error(followed)
				}
			}
			var want strings.Builder
			for i := range 4000 {
				fmt.Fprintf(&want, "rank %d line %d\n", rank, i+1)
			}
			want.WriteString("the end without a newline")
			if b.String() != want.String() {
				t.Errorf("rank %d: %d bytes of %d, and they differ at %d", rank, b.Len(), want.Len(), differ(b.String(), want.String()))
			}
			if has, err := r.replicas[0].HasAll(r.soon(), map[string]job.Cursor{fmt.Sprintf("rank-%d.log", rank): at}); !has || err != nil {
				t.Errorf("rank %d: there is more, %v", rank, err)
			}
		})
	}
	all.Wait()
	<-over
	if got := told(r.story(0)); got != "started rank-ended(0) rank-ended(0) ended(0)" {
		t.Error(got)
	}
}

func differ(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// A line that is longer than a runtime's pieces, and a progress bar.
func TestALongLineAndAProgressBarComeAsTheyWerePrinted(t *testing.T) {
	realCluster(t)
	script := `python3 -c 'import sys,time
sys.stdout.write("x" * 100000 + "\n")
for i in range(5):
    sys.stdout.write("\r%d%%" % (20 * i)); sys.stdout.flush(); time.sleep(0.5)
sys.stdout.write("\ndone\n")'`
	want := strings.Repeat("x", 100000) + "\n\r0%\r20%\r40%\r60%\r80%\ndone\n"
	r := submit(t, options.Machines{Kind: options.Job}, 1, script)
	r.await()
	if got, _ := r.log(0, ""); got != want {
		t.Errorf("%d bytes, which differ at %d", len(got), differ(got, want))
	}
}

// A stop ends the log: the last words come, and then nothing more is awaited.
func TestTheLogOfAStoppedJobEndsBehindItsLastWords(t *testing.T) {
	realCluster(t)
	for _, kind := range []string{options.PyTorchJob, options.TrainJob, options.Job} {
		t.Run(kind, func(t *testing.T) {
			r := submit(t, options.Machines{Kind: kind}, 1, `trap 'echo last words; exit 9' TERM; echo up; while :; do sleep 0.1; done`)
			r.await()
			got := make(chan string, 1)
			up := make(chan struct{})
			go func() {
				var b bytes.Buffer
				_ = r.replicas[0].FollowLog(r.soon(), "rank-0.log", "", func(c job.Chunk) error {
					if b.Len() == 0 {
						close(up)
					}
					b.Write(c.Data)
					return nil
				})
				got <- b.String()
			}()
			<-up
			if left, err := r.replicas[0].Stop(r.soon(), 10*time.Second, "asked: by a test"); left != 0 || err != nil {
				t.Fatal(left, err)
			}
			if text := <-got; text != "up\nlast words\n" {
				t.Errorf("%q", text)
			}
		})
	}
}

// A job that waits in a queue says for what, begins when there is room, and one
// that never can is told so.
func TestAQueueSaysWhatItWaitsFor(t *testing.T) {
	c := realCluster(t)
	c.Apply(t, queues)
	time.Sleep(time.Second)
	m := options.Machines{Kind: options.PyTorchJob, Queue: "gpus", GPUs: 1}
	first := submit(t, m, 1, "sleep 300")
	first.await()
	second := submit(t, m, 1, "echo my turn")
	var said []string
	var mu sync.Mutex
	waited := make(chan error, 1)
	go func() {
		note := func(text string) { mu.Lock(); defer mu.Unlock(); said = append(said, text) }
		waited <- second.p.Await(second.soon(), second.life, second.ref, func(step, text string) { note(step + ": " + text) }, func(_ int, text string) { note(text) })
	}()
	time.Sleep(4 * time.Second)
	if _, err := first.replicas[0].Stop(first.soon(), 5*time.Second, "asked: by a test"); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(said, "\n"); !strings.Contains(text, "queue: it waits in queue gpus: couldn't assign flavors to pod set master: insufficient unused quota for nvidia.com/gpu") {
		t.Errorf("it said\n%s", text)
	}
	if got := told(second.story(0)); got != "started rank-ended(0) ended(0)" {
		t.Error(got)
	}
	never := submit(t, m, 2, "echo never")
	err := never.p.Await(never.soon(), never.life, never.ref, never.step, never.say)
	if err == nil || !strings.Contains(err.Error(), "queue gpus can never admit it") {
		t.Errorf("two of one: %v", err)
	}
}

// What keeps pods from starting is told as it happens: no node, no image.
func TestWhyPodsDoNotStartIsTold(t *testing.T) {
	realCluster(t)
	for name, k := range map[string]struct {
		m    options.Machines
		want string
	}{
		"taint or room": {options.Machines{Kind: options.PyTorchJob, GPUs: 3}, "queue: 1 of 2 pods run and hold what they have; no node takes "},
		"image":         {options.Machines{Kind: options.Job}, "start: "},
	} {
		t.Run(name, func(t *testing.T) {
			life, j := jobOf(t, k.m, 2, "sleep 100")
			if name == "image" {
				j.Spec.Image = "missing/image:1"
				k.want = "the image missing/image:1 of container main can't be pulled: "
			}
			r := handIn(t, life, j)
			ctx, enough := context.WithCancel(r.soon())
			var said []string
			note := func(text string) {
				if said = append(said, text); strings.Contains(text, k.want) {
					enough()
				}
			}
			err := r.p.Await(ctx, r.life, r.ref, func(step, text string) { note(step + ": " + text) }, func(_ int, text string) { note("queue: " + text) })
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%v; it said %q", err, said)
			}
		})
	}
}

// A pod that is evicted is lost, and no fault of the training's.
func TestAnEvictedPodWasTakenAway(t *testing.T) {
	c := realCluster(t)
	r := submit(t, options.Machines{Kind: options.Job}, 1, "echo up; sleep 100")
	r.await()
	pod := r.pod(0).name
	evict := fmt.Sprintf(`{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": %q, "namespace": "default"}}`, pod)
	if err := c.Post(t.Context(), "/api/v1/namespaces/default/pods/"+pod+"/eviction", evict); err != nil {
		t.Fatal(err)
	}
	if got := told(r.story(0)); !strings.Contains(got, "stopping(lost: pod "+pod+" was ended: its node was drained") {
		t.Error(got)
	}
}
