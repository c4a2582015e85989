package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/sample"
	"github.com/dlwb/dlwb/metrics"
)

// writerScript prints a loss, rounded, and writes it into an event file and
// metrics.csv: with PyTorch's SummaryWriter where there is one, else by itself.
const writerScript = `
import math, os, struct, sys, time
rank, steps = int(os.environ["RANK"]), 40
table = []
for i in range(256):
    c = i
    for _ in range(8):
        c = c >> 1 ^ 0x82F63B78 if c & 1 else c >> 1
    table.append(c)
def masked(b):
    c = 0xFFFFFFFF
    for x in b:
        c = table[(c ^ x) & 255] ^ c >> 8
    c ^= 0xFFFFFFFF
    return struct.pack("<I", ((c >> 15 | c << 17) + 0xA282EAD8) & 0xFFFFFFFF)
class Writer:
    def __init__(self, dir):
        os.makedirs(dir, exist_ok=True)
        self.f = open(dir + "/events.out.tfevents.%%d.host" %% time.time(), "wb")
    def add_scalar(self, tag, v, step):
        val = b"\x0a" + bytes([len(tag)]) + tag.encode() + b"\x15" + struct.pack("<f", v)
        e = b"\x09" + struct.pack("<d", time.time()) + b"\x10" + bytes([step]) + b"\x2a" + bytes([len(val) + 2]) + b"\x0a" + bytes([len(val)]) + val
        n = struct.pack("<Q", len(e))
        self.f.write(n + masked(n) + e + masked(e))
    def flush(self):
        self.f.flush()
    close = flush
if rank == 0:
    try:
        from torch.utils.tensorboard import SummaryWriter as Writer
    except ImportError:
        pass
    w = Writer("outputs/tb")
    t = open("outputs/metrics.csv", "w")
    t.write("step,val_loss\n")
    for i in range(1, steps + 1):
        loss = 4 / math.sqrt(i)
        print(f"step {i}/{steps} loss: {loss:.2f}", flush=True)
        w.add_scalar("train/loss", loss, i)
        if i %% 10 == 0:
            t.write(f"{i},{loss * 1.1!r}\n")
        w.flush(); t.flush()
        while i == 20 and not os.path.exists(%q):
            time.sleep(0.05)
    w.close()
`

// git makes the bed's project a repository, or commits what changed.
func (b *bed) git(args ...string) {
	b.t.Helper()
	c := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
	c.Dir = b.dir
	if out, err := c.CombinedOutput(); err != nil {
		b.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// answer runs dlwb with --json and reads its answer.
func (b *bed) answer(into any, args ...string) {
	b.t.Helper()
	r := b.run(append(args, "--json")...)
	if err := json.Unmarshal([]byte(r.stdout), into); r.code != 0 || err != nil {
		b.t.Fatalf("dlwb %v: exit code %d, %v\n%s%s", args, r.code, err, r.stdout, r.stderr)
	}
}

func TestARunIsKeptComparedExportedAndDoneAgain(t *testing.T) {
	sample.Leave(t)
	b := newBed(t)
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("NOT RUN: there is no git here")
	}
	goOn := filepath.Join(b.home, "go-on")
	b.profile(fmt.Sprintf(writerScript, goOn), "  env: {SECRET_TOKEN: \"${env:DLWB_TEST_SECRET}\"}\nresults: {paths: [outputs/]}\n")
	b.env = append(b.env, "DLWB_TEST_SECRET=hunter2-hunter2")
	b.git("init", "-q")
	b.git("add", "-A")
	b.git("commit", "-qm", "first")
	b.write("helper.py", "x = 1\n")

	s := b.start("run", "--json")
	first := s.await("a point of the event file, while the run goes on", func(e printedEvent) bool {
		return e["event"] == "point" && strings.Contains(fmt.Sprint(e["source"]), "tfevents") && e["step"] == 20.0
	})["run"].(string)
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := s.end(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	t.Run("series", func(t *testing.T) { b.theSeries(t, first) })
	t.Run("export", func(t *testing.T) { b.theExports(t, first) })
	t.Run("recipe", func(t *testing.T) { b.theRecipe(t, first) })
	b.write("helper.py", "x = 2\n")
	b.git("add", "-A")
	b.git("commit", "-qm", "second")
	t.Run("rerun", func(t *testing.T) { b.theRerun(t, first) })
}

func (b *bed) theSeries(t *testing.T, run string) {
	var m metricsAnswer
	b.answer(&m, "metrics", run)
	if len(m.Series) != 2 || m.Series[0].Name != "loss" || m.Series[1].Name != "val/loss" {
		t.Fatalf("series: %+v", m.Series)
	}
	loss := m.Series[0]
	if len(loss.Points) != 40 || loss.Axis != "step" || loss.Points[2] != (plotPoint{3, float64(float32(2.309401076758503))}) || len(loss.Sources) != 2 {
		t.Errorf("loss: %+v", loss)
	}
	if val := m.Series[1]; len(val.Points) != 4 || val.Split != "val" || !strings.HasSuffix(val.Sources[0].Source, "outputs/metrics.csv") {
		t.Errorf("val/loss: %+v", val)
	}
	if r := b.run("metrics", run, "--why"); !strings.Contains(r.stdout, "words and numbers") || !strings.Contains(r.stdout, "shown: all") {
		t.Errorf("why: %s%s", r.stdout, r.stderr)
	}
	if r := b.run("metrics", "no-such-run"); r.code != 1 || !strings.Contains(r.stderr, "is no file, and no run") {
		t.Errorf("exit code %d\n%s", r.code, r.stderr)
	}
}

func (b *bed) theExports(t *testing.T, run string) {
	csv := b.run("export", run)
	if lines := strings.Split(strings.TrimSpace(csv.stdout), "\n"); len(lines) != 45 || lines[0] != "series,split,step,epoch,time,value,source,axis" {
		t.Errorf("%d lines of CSV:\n%s%s", len(lines), csv.stdout, csv.stderr)
	}
	// What dlwb writes, it reads: the same names, places and counts.
	onRecord := b.run("metrics", run, "--json").stdout
	lines := b.run("export", run, "--format", "jsonl").stdout
	for name, text := range map[string]string{"own.csv": csv.stdout, "own.jsonl": lines, "own.json": onRecord} {
		if got, want := b.seriesIn("metrics", b.write(name, text)), b.seriesIn("metrics", run); got != want {
			t.Errorf("%s reads as\n%swant\n%s", name, got, want)
		}
	}
	file := filepath.Join(b.home, "run.tfevents")
	var said exportAnswer
	b.answer(&said, "export", run, "--format", "tfevents", "-o", file)
	f, err := os.ReadFile(file)
	if err != nil || said.Bytes != int64(len(f)) {
		t.Fatalf("%+v, %v", said, err)
	}
	if doc, err := metrics.Read(bytes.NewReader(f), nil, nil); err != nil || doc.Format != metrics.EventFile || len(doc.Set.Series) != 2 || doc.Set.Series[0].Len() != 40 {
		t.Errorf("the event file: %+v, %v", doc, err)
	}
	link, full := filepath.Join(b.home, "link.csv"), filepath.Join(b.home, "full.csv")
	if err := os.Symlink("full.csv", link); err != nil {
		t.Fatal(err)
	}
	b.run("export", run, "-o", link)
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", info, err)
	}
	if got, err := os.ReadFile(full); err != nil || string(got) != csv.stdout {
		t.Errorf("behind the link are %d bytes, %v", len(got), err)
	}
	if out := b.run("export", run, "-o", "/dev/stdout"); out.stdout != csv.stdout {
		t.Errorf("/dev/stdout got other bytes than standard output: %s%s", out.stdout, out.stderr)
	}
	for _, args := range [][]string{{"export", run, "--format", "xls"}, {"export", run, "--json"}} {
		if r := b.run(args...); r.code != 2 {
			t.Errorf("%v: exit code %d", args, r.code)
		}
	}
}

// seriesIn are the series of an answer, one in a line, with how they are placed.
func (b *bed) seriesIn(args ...string) string {
	b.t.Helper()
	var said struct {
		Series []struct {
			Name, Split, Axis string
			Points            [][2]any
		}
	}
	b.answer(&said, args...)
	var text strings.Builder
	for _, s := range said.Series {
		fmt.Fprintln(&text, s)
	}
	return text.String()
}

func (b *bed) theRecipe(t *testing.T, run string) {
	book := b.run("runbook", run)
	for _, want := range []string{"# Run " + run, "| loss | 40 | 4 |", "command: train.py", "b/helper.py", "## By hand", "RANK=1", "requirements.lock"} {
		if !strings.Contains(book.stdout, want) {
			t.Errorf("%q is not in the runbook:\n%.6000s", want, book.stdout)
		}
	}
	if strings.Contains(book.stdout, "hunter2") || !strings.Contains(book.stdout, "${env:DLWB_TEST_SECRET}") {
		t.Error("the runbook has a secret, or lacks its reference")
	}
	if r := b.run("note", run, "a first try"); r.code != 0 {
		t.Errorf("note: %s", r.stderr)
	}
	if r := b.run("star", run); r.code != 0 {
		t.Errorf("star: %s", r.stderr)
	}
	list := b.run("runs", "--filter", "starred=yes and loss<1 and note~first", "--sort", "-best.val/loss")
	if !strings.Contains(list.stdout, "★ "+run) || !strings.Contains(list.stdout, "BEST.VAL/LOSS") {
		t.Errorf("runs: %s%s", list.stdout, list.stderr)
	}
	for _, sort := range []string{"loss", "started"} {
		head, _, _ := strings.Cut(b.run("runs", "--sort", sort).stdout, "\n")
		if strings.Count(head, "LOSS") != 1 {
			t.Errorf("sorted by %s: %s", sort, head)
		}
	}
}

func (b *bed) theRerun(t *testing.T, run string) {
	var plan rerunAnswer
	b.answer(&plan, "rerun", run, "--plan")
	if said := strings.Join(plan.Differs, "; "); plan.Checkout || !strings.Contains(said, "the commit is") {
		t.Errorf("what differs: %s", said)
	}
	r := b.run("rerun", run, "--checkout", "--json")
	if r.code != 0 || r.one(t, "run_ended")["verdict"] != "succeeded" {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	again := r.one(t, "run_started")["run"].(string)
	var c struct {
		Differences []struct{ Key string }
		Metrics     []struct{ Name string }
	}
	b.answer(&c, "compare", run, again)
	if len(c.Differences) != 0 || len(c.Metrics) != 2 {
		t.Errorf("compared with its rerun: %+v", c)
	}
	if b, err := os.ReadFile(filepath.Join(b.dir, "helper.py")); err != nil || string(b) != "x = 2\n" {
		t.Errorf("the working tree has %q, %v", b, err)
	}
	if left, _ := os.ReadDir(filepath.Join(b.home, "state", "worktrees")); len(left) > 0 {
		t.Errorf("checkouts are left: %v", left)
	}
}
