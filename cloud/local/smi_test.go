//go:build unix

package local

import (
	"bufio"
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

func TestSimulatedGPUsFollowTheTrainingsCPUUse(t *testing.T) {
	t.Parallel()
	p := provider(t)
	c := up(t, p, 2, 2)
	if c.Nodes[0].SimulatedGPUs != 2 {
		t.Errorf("the node does not say that its GPUs are simulated: %+v", c.Nodes[0])
	}
	client := login(t, c, 0)
	if got := sh(t, client, `command -v nvidia-smi; echo "$DLWB_SIMULATED_GPUS"`); got != nodeDir(p.dir+"/c", 0)+"/bin/nvidia-smi\n2" {
		t.Error(got)
	}
	query := func(client *ssh.Client) []int {
		var util []int
		for line := range strings.Lines(sh(t, client, "nvidia-smi --query-gpu=utilization.gpu --format=csv,noheader,nounits")) {
			n, err := strconv.Atoi(strings.TrimSpace(line))
			if err != nil {
				t.Errorf("utilisation: %v", err)
			}
			util = append(util, n)
		}
		if len(util) != 2 {
			t.Fatalf("%d GPUs answer", len(util))
		}
		return util
	}
	other := login(t, c, 1)
	if u := query(client); u[0] >= 10 || u[1] >= 10 {
		t.Errorf("an idle node: %v", u)
	}
	// One rank of a run works and the other does not.
	pid := sh(t, client, `LOCAL_RANK=1 DLWB_RUN=r setsid sh -c 'while :; do :; done' >/dev/null 2>&1 </dev/null & echo $!`)
	eventually(t, "GPU 1 works and GPU 0 does not", func() bool { u := query(client); return u[1] >= 10 && u[0] < u[1]/2 })
	if u := query(other); u[0] >= 10 || u[1] >= 10 {
		t.Errorf("the other node's GPUs show what is not theirs: %v", u)
	}
	sh(t, client, "kill -9 "+pid)
	eventually(t, "GPU 1 is idle again", func() bool { u := query(client); return u[1] < 10 })
}

func TestSimulatedMemoryFollowsTheProcesses(t *testing.T) {
	t.Parallel()
	p := provider(t)
	client := login(t, up(t, p, 1, 1), 0)
	used := func() int {
		mib, err := strconv.Atoi(sh(t, client, "nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits"))
		if err != nil {
			t.Fatal(err)
		}
		return mib
	}
	before := used()
	// dd holds its block in memory as long as nobody reads what it writes.
	sh(t, client, `mkfifo hole; setsid sh -c 'dd if=/dev/zero bs=200M count=1 of=hole' >/dev/null 2>&1 </dev/null & setsid sleep 1000 >/dev/null 2>&1 <>hole &`)
	eventually(t, "200 MB more are used", func() bool { return used() >= before+190 })
	apps := sh(t, client, "nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv,noheader")
	if !regexp.MustCompile(`(?m)^\d+, dd, 2\d\d MiB$`).MatchString(apps) {
		t.Errorf("the process is not listed: %q", apps)
	}
}

func TestSimulatedSMIAnswersInNvidiaSMIsForms(t *testing.T) {
	t.Parallel()
	client := login(t, up(t, provider(t), 1, 2), 0)
	for _, c := range []struct{ args, want string }{
		{"--query-gpu=index,name,utilization.gpu,memory.used,memory.total,temperature.gpu,power.draw,power.limit --format=csv,noheader,nounits",
			`^0, Simulated GPU, \d+, \d+, 16384, \d+, \d+\.\d\d, 250\.00\n1, Simulated GPU, \d+, \d+, 16384, \d+, \d+\.\d\d, 250\.00$`},
		{"--query-gpu=index,memory.total,fan.speed --format=csv",
			`^index, memory\.total \[MiB\], fan\.speed \[%\]\n0, 16384 MiB, \[N/A\]\n1, 16384 MiB, \[N/A\]$`},
		{"--query-gpu=index --format=csv,noheader -i 1", `^1$`},
		{"-L", `^GPU 0: Simulated GPU \(UUID: GPU-[0-9a-f-]{36}\)\nGPU 1: Simulated GPU \(UUID: GPU-[0-9a-f-]{36}\)$`},
		{"--query-compute-apps=pid,process_name,used_memory --format=csv", `^pid, process_name, used_memory \[MiB\]$`},
		{"", `SIMULATED[\s\S]*\|   0  Simulated GPU .* 16384MiB[\s\S]*\|   1  Simulated GPU`},
		{"--query-gpu=index,colour --format=csv; echo $?", `^Field "colour" is not a valid field to query\.\n\n2$`},
		{"--gom=0; echo $?", `(?s)^Invalid combination.*\n2$`},
		{"-l 0; echo $?", `(?s)^Invalid loop.*\n2$`},
	} {
		if got := sh(t, client, "nvidia-smi "+c.args); !regexp.MustCompile(c.want).MatchString(got) {
			t.Errorf("nvidia-smi %s:\n%s", c.args, got)
		}
	}
	for _, line := range strings.Split(sh(t, client, "nvidia-smi"), "\n") {
		if len(line) != 79 {
			t.Errorf("the table is not straight: %q", line)
		}
	}
}

func TestALoopGoesOnUntilNobodyReads(t *testing.T) {
	t.Parallel()
	client := login(t, up(t, provider(t), 1, 1), 0)
	s := newSession(t, client)
	out, err := s.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start("echo $$; exec nvidia-smi --query-gpu=index --format=csv,noheader -lms 20"); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan()
	pid, err := strconv.Atoi(lines.Text())
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if !lines.Scan() || lines.Text() != "0" {
			t.Fatalf("the loop said %q: %v", lines.Text(), lines.Err())
		}
	}
	s.Close()
	eventually(t, "the loop has ended", func() bool { return !running(pid) })
}

func TestCPUTimeIsSharedOutByLocalRank(t *testing.T) {
	t.Parallel()
	before := map[int]process{1: {pid: 1, start: "a", cpu: time.Second}, 3: {pid: 3, start: "old", cpu: time.Hour}}
	now := map[int]process{
		1: {pid: 1, start: "a", cpu: 1500 * time.Millisecond, rss: 20 << 20, name: "python"},
		2: {pid: 2, start: "b", cpu: 3 * time.Second, rss: 1 << 20},
		3: {pid: 3, start: "new", cpu: 0, rss: 64 << 30},
	}
	gpus := share(idle(2, "c"), before, now, time.Second, func(pid int) int { return pid })
	for i, want := range []string{"0 100 1 []", "1 50 16384 [python ]"} {
		g := gpus[i]
		var names []string
		for _, a := range g.apps {
			names = append(names, a.name)
		}
		// The order of a map: python is listed once, and so is the one without a name.
		text := fmt.Sprintf("%d %d %d %v", g.index, g.util, g.used>>20, names)
		if text != want && text != "1 50 16384 [ python]" {
			t.Errorf("GPU %d: %s, want %s", i, text, want)
		}
	}
	if got := share(nil, nil, now, time.Second, func(int) int { return 0 }); len(got) != 0 {
		t.Error(got)
	}
	var out bytes.Buffer
	table(&out, gpus)
	if !strings.Contains(out.String(), "python") {
		t.Error(out.String())
	}
}
