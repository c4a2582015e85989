//go:build linux

package helpers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud/pack"
)

// pods are processes that stand for the pods of a job, with one directory together that
// what runs in them finds in TOLD.
type pods struct {
	*testing.T
	told string
	all  []*pod
}

type pod struct {
	*exec.Cmd
	dir  string
	out  output
	over chan struct{}
}

// output is no bytes.Buffer by itself: os/exec would take its ReadFrom, which no lock holds.
type output struct {
	mu   sync.Mutex
	said bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.said.Write(p)
}

func (o *output) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.said.String()
}

// helps is a helper that goes on until it is told to end, and says so.
const helps = `trap 'echo helper $N is told; : >"$TOLD/ended-$N"; exit 0' TERM
echo helper $N; : >"$TOLD/up-$N"; while :; do sleep 0.05; done`

// job makes the pods of a job of so many, whose rank in pod 0 is a script of sh.
func job3(t *testing.T, driver string, change func(all []Node)) *pods {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3 here")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	head := "127.0.0.1:" + strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	_ = l.Close()
	p := &pods{T: t, told: t.TempDir()}
	var all []Node
	for i := range 3 {
		n := Node{Number: i, Pods: 3, Head: head, Procs: []Proc{{Name: "ray", Helper: true, Proc: pack.Proc{Env: []string{"N=" + strconv.Itoa(i)}, Argv: []string{"sh", "-c", helps}}}}}
		if i == 0 {
			up := `[ -e "$TOLD/up-0" ] && [ -e "$TOLD/up-1" ] && [ -e "$TOLD/up-2" ] || { echo not all are up; exit 1; }`
			n.Procs = append(n.Procs, Proc{Name: "rank-0", Proc: pack.Proc{Ranks: []int{0}, Argv: []string{"sh", "-c", driver}}, After: &After{What: "all helpers", Argv: []string{"sh", "-c", up}, Limit: 60}})
		}
		all = append(all, n)
	}
	if change != nil {
		change(all)
	}
	for _, n := range all {
		text, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		one := &pod{dir: t.TempDir(), over: make(chan struct{})}
		for name, text := range map[string]string{"serve.py": serve, "launch.py": pack.Launcher, "node.json": string(text)} {
			if err := os.WriteFile(filepath.Join(one.dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		one.Cmd = exec.Command("python3", "-u", filepath.Join(one.dir, "serve.py"), filepath.Join(one.dir, "node.json"))
		one.Env = append(os.Environ(), "TOLD="+p.told, "DLWB_ENDS="+filepath.Join(one.dir, "ends"), "DLWB_GRACE=30")
		one.Stdout, one.Stderr, one.SysProcAttr = &one.out, &one.out, &syscall.SysProcAttr{Setpgid: true}
		one.WaitDelay = 10 * time.Second
		p.all = append(p.all, one)
	}
	return p
}

func (p *pods) start(which ...int) {
	p.Helper()
	for _, i := range which {
		one := p.all[i]
		if err := one.Start(); err != nil {
			p.Fatal(err)
		}
		go func() {
			_ = one.Wait()
			close(one.over)
		}()
		p.Cleanup(func() { // as the end of a container does
			_ = syscall.Kill(-one.Process.Pid, syscall.SIGKILL)
			<-one.over
		})
	}
}

// ends holds with which codes the pods end, and what the last one of a rank was.
func (p *pods) ends(codes ...int) {
	p.Helper()
	for i, want := range codes {
		if want < 0 {
			continue
		}
		select {
		case <-p.all[i].over:
		case <-time.After(time.Minute):
			p.Fatalf("pod %d does not end:\n%s", i, p.all[i].out.text())
		}
		if got := p.all[i].ProcessState.ExitCode(); got != want {
			p.Errorf("pod %d ended with %d, not %d:\n%s", i, got, want, p.all[i].out.text())
		}
	}
}

func (p *pods) left(i int) string {
	text, _ := os.ReadFile(filepath.Join(p.all[i].dir, "ends"))
	return string(text)
}

// until waits for a file that the pods write.
func (p *pods) until(name string) {
	p.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(p.told, name)); err == nil {
			return
		} else if time.Now().After(end) {
			var all string
			for i, one := range p.all {
				all += fmt.Sprintf("pod %d:\n%s", i, one.out.text())
			}
			p.Fatalf("there is no %s\n%s", name, all)
		}
	}
}

// The rank begins when all helpers are up, and they are told to end when it has ended: that
// is no failure of theirs, however it ended.
func TestHelpersEndWithTheRanks(t *testing.T) {
	for _, code := range []int{0, 3} {
		p := job3(t, fmt.Sprintf(`echo trains; ls "$TOLD"; exit %d`, code), nil)
		p.start(0, 1, 2)
		p.ends(code, 0, 0)
		if out := p.all[0].out.text(); !strings.Contains(out, "[rank0] trains\n[rank0] up-0\n[rank0] up-1\n[rank0] up-2\n") {
			t.Error(out)
		}
		for i, one := range p.all {
			if want := fmt.Sprintf("helper %d is told\n", i); !strings.Contains(one.out.text(), want) {
				t.Errorf("%q is not in\n%s", want, one.out.text())
			}
		}
		if got := p.left(0); got != fmt.Sprintf("ranks: 0:%d\n", code) {
			t.Errorf("pod 0 has left %q", got)
		}
	}
}

// Nothing is started as long as a pod is missing: what waits for the others has little
// patience.
func TestAPodThatComesLateIsWaitedFor(t *testing.T) {
	p := job3(t, "echo trains", nil)
	p.start(2) // before pod 0, too
	p.start(0)
	until := time.Now().Add(time.Minute) // until pod 0 knows of pod 2
	for at := p.nodeOf(0).Head; ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp", at)
		if err == nil {
			_ = c.Close()
			break
		} else if time.Now().After(until) {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(p.told, "up-0")); err == nil {
		t.Error("the head was started before all are there")
	}
	p.start(1)
	p.ends(0, 0, 0)
}

func (p *pods) nodeOf(i int) (n Node) {
	p.Helper()
	text, err := os.ReadFile(filepath.Join(p.all[i].dir, "node.json"))
	if err == nil {
		err = json.Unmarshal(text, &n)
	}
	if err != nil {
		p.Fatal(err)
	}
	return n
}

// A helper that ends by itself ends its pod, which says so; the others are told, and the
// rank ends in its time when its pod is told to.
func TestAHelperThatEndsByItselfIsNamed(t *testing.T) {
	p := job3(t, `trap 'echo saved; exit 143' TERM; : >"$TOLD/trains"; while :; do sleep 0.05; done`, func(all []Node) {
		all[2].Procs[0].Argv = []string{"sh", "-c", `: >"$TOLD/up-2"; until [ -e "$TOLD/trains" ]; do sleep 0.05; done; exit 5`}
	})
	p.start(0, 1, 2)
	p.ends(-1, -1, 5)
	if got := p.left(2); got != "helper: ray on node2 ended with code 5: the log of its launcher says why\n" {
		t.Errorf("pod 2 has left %q", got)
	}
	p.said(0, "dlwb: node2 is lost")
	_ = p.all[0].Process.Signal(syscall.SIGTERM) // the job has failed
	p.ends(143, 0)
	if out := p.all[0].out.text(); !strings.Contains(out, "[rank0] saved\n") {
		t.Error(out)
	}
}

// said waits until a pod has printed something.
func (p *pods) said(i int, what string) {
	p.Helper()
	for end := time.Now().Add(time.Minute); !strings.Contains(p.all[i].out.text(), what); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			p.Fatalf("%q is not in\n%s", what, p.all[i].out.text())
		}
	}
}

// The head of pod 0 takes the rank with it, and is named: the rank has only been told.
func TestAHeadThatEndsByItselfIsNamed(t *testing.T) {
	p := job3(t, `trap 'exit 143' TERM; : >"$TOLD/trains"; while :; do sleep 0.05; done`, func(all []Node) {
		all[0].Procs[0].Argv = []string{"sh", "-c", `: >"$TOLD/up-0"; until [ -e "$TOLD/trains" ]; do sleep 0.05; done; exit 5`}
	})
	p.start(0, 1, 2)
	p.ends(143, 0, 0)
	if got := p.left(0); got != "helper: ray on node0 ended with code 5: the log of its launcher says why\nranks: 0:143\n" {
		t.Errorf("pod 0 has left %q", got)
	}
}

// All pods are told to end at once: the rank has its helpers until it has ended.
func TestARankThatIsToldToEndHasItsHelpersToTheLast(t *testing.T) {
	p := job3(t, `trap 'sleep 1; ls "$TOLD" | grep ended; echo saved; exit 0' TERM; : >"$TOLD/trains"; while :; do sleep 0.05; done`, nil)
	p.start(0, 1, 2)
	p.until("trains")
	for _, i := range []int{2, 1, 0} {
		_ = p.all[i].Process.Signal(syscall.SIGTERM)
	}
	p.ends(0, 0, 0)
	if out := p.all[0].out.text(); !strings.Contains(out, "[rank0] saved\n") || strings.Contains(out, "[rank0] ended-") {
		t.Error(out)
	}
}

// A pod that is killed says nothing: the others hear it by its connection.
func TestAPodThatIsKilledIsLost(t *testing.T) {
	p := job3(t, `trap 'exit 143' TERM; : >"$TOLD/trains"; while :; do sleep 0.05; done`, nil)
	p.start(0, 1, 2)
	p.until("trains")
	_ = syscall.Kill(-p.all[1].Process.Pid, syscall.SIGKILL)
	p.said(0, "dlwb: node1 is lost: its pod has ended, or can't be reached")
}

// A driver of Ray that is told to end exits with 15: that is no failure of its own, and
// what pod 0 leaves says so.
func TestARankThatWasToldToEndHasNotFailedByItself(t *testing.T) {
	p := job3(t, `trap 'exit 15' TERM; : >"$TOLD/trains"; while :; do sleep 0.05; done`, nil)
	p.start(0, 1, 2)
	p.until("trains")
	_ = p.all[0].Process.Signal(syscall.SIGTERM)
	p.ends(15, 0, 0)
	if got := p.left(0); !Told(got) || !strings.HasSuffix(got, "ranks: 0:15\n") {
		t.Errorf("pod 0 has left %q", got)
	}
}

// A helper that ends when its pod was told to end is not why: the job has ended for
// another reason.
func TestAHelperThatEndsInAPodThatIsToEndIsNotAtFault(t *testing.T) {
	p := job3(t, `trap ': >"$TOLD/told"; sleep 1; exit 15' TERM; : >"$TOLD/trains"; while :; do sleep 0.05; done`, func(all []Node) {
		for i := range 2 {
			all[i].Procs[0].Argv = []string{"sh", "-c", fmt.Sprintf(`: >"$TOLD/up-%d"; until [ -e "$TOLD/told" ]; do sleep 0.05; done; exit 5`, i)}
		}
	})
	p.start(0, 1, 2)
	p.until("trains")
	for _, i := range []int{1, 0} {
		_ = p.all[i].Process.Signal(syscall.SIGTERM)
	}
	p.ends(15, -1, 0)
	if got := p.left(0) + p.left(1); strings.Contains(got, "helper: ") || !Told(got) {
		t.Errorf("the pods have left %q", got)
	}
}

// What the rank waits for, and never comes, is in its log.
func TestARankWhoseHelpersDoNotComeUpSaysWhatIsMissing(t *testing.T) {
	p := job3(t, "echo trains", func(all []Node) {
		all[0].Procs[1].After.Argv = []string{"sh", "-c", "echo node2 has not joined; exit 3"}
	})
	p.start(0, 1, 2)
	p.ends(69, 0, 0)
	if out := p.all[0].out.text(); !strings.Contains(out, "[rank0] dlwb: there is not all of all helpers: node2 has not joined\n") {
		t.Error(out)
	}
	if got := p.left(0); got != "ranks: 0:69\n" {
		t.Errorf("pod 0 has left %q", got)
	}
}
