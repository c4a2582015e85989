//go:build unix

package kubernetes

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/pack"
	"github.com/dlwb/dlwb/internal/plainfile"
)

// keeping is a replica's directory as launch.sh leaves it, and the stage here.
type keeping struct {
	*testing.T
	work, base, path string
}

func newKeeping(t *testing.T, paths string) *keeping {
	k := &keeping{T: t, work: t.TempDir(), base: t.TempDir(), path: os.Getenv("PATH")}
	for name, text := range map[string]string{"keep.py": keepPy, "keep.sh": keepSh, "keep": paths, keptList: "{}", "code/outputs/given.txt": "came with the code", ".dlwb-node/.here": ""} {
		k.write(name, text)
	}
	if err := os.Remove(filepath.Join(k.work, ".dlwb-node/.here")); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("sh", filepath.Join(k.work, "keep.sh"), "note", "0", filepath.Join(k.work, "code")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return k
}

func (k *keeping) write(name, text string) {
	k.Helper()
	file := filepath.Join(k.work, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
		k.Fatal(err)
	}
}

// round is one round of replica n, without a pod between; it gives how many bytes came.
func (k *keeping) round(n int) int {
	k.Helper()
	size, err := k.try(n)
	if err != nil {
		k.Fatal(err)
	}
	return size
}

// try is a round that may fail.
func (k *keeping) try(n int) (int, error) {
	k.Helper()
	s, err := newStaging(filepath.Join(k.base, strconv.Itoa(n)))
	if err != nil {
		k.Fatal(err)
	}
	defer s.close()
	before, _ := s.list(s.old)
	c := exec.Command("sh", filepath.Join(k.work, "keep.sh"), strconv.Itoa(n), filepath.Join(k.work, "code"), strconv.FormatInt(before.At, 10))
	c.Env = []string{"PATH=" + k.path}
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	if err := c.Run(); err != nil {
		k.Fatalf("keep.sh: %v: %s", err, said.String())
	}
	size := out.Len()
	skipped, err := s.fill(&out)
	if err == nil {
		err = s.settle("pod", skipped)
	}
	return size, err
}

// home is what is here of replica n: names and texts.
func (k *keeping) home(n int) string {
	k.Helper()
	to := k.TempDir()
	into, err := os.OpenRoot(to)
	if err != nil {
		k.Fatal(err)
	}
	defer into.Close()
	if _, err := copyTree(filepath.Join(k.base, strconv.Itoa(n)), into); err != nil {
		k.Fatal(err)
	}
	var all []string
	_ = filepath.WalkDir(to, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			text, _ := os.ReadFile(p)
			rel, _ := filepath.Rel(to, p)
			all = append(all, rel+"="+string(text))
		}
		return nil
	})
	return strings.Join(all, " ")
}

func TestWhatAPodWroteComesHomeRoundByRound(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is missing: apt-get install python3")
	}
	k := newKeeping(t, "outputs\nmodel.pt\n-odd name\n")
	k.write("code/outputs/a b.txt", "one")
	k.write("code/outputs/deep/big", strings.Repeat("x", 300_000))
	k.write("code/-odd name", "odd")
	k.write("code/elsewhere", "no result")
	k.write(".dlwb-node/notes", "mine")
	if err := os.Symlink("a b.txt", filepath.Join(k.work, "code/outputs/link")); err != nil {
		t.Fatal(err)
	}
	first := k.round(0)
	want := "-odd name=odd node0/notes=mine outputs/a b.txt=one outputs/deep/big=" + strings.Repeat("x", 300_000) + " outputs/link=one"
	if got := k.home(0); got != want {
		t.Errorf("after the first round: %.200s", got)
	}
	// What has not changed is not sent again, what is gone there goes here. Times are
	// coarse: what is younger than two seconds is sent.
	k.age()
	k.round(0)
	if err := os.Remove(filepath.Join(k.work, "code/outputs/a b.txt")); err != nil {
		t.Fatal(err)
	}
	if second := k.round(0); second >= first/4 {
		t.Errorf("the second round sends %d bytes, the first %d", second, first)
	}
	if got := k.home(0); strings.Contains(got, "a b.txt=") || !strings.Contains(got, strings.Repeat("x", 300_000)) {
		t.Errorf("after the second round: %.200s", got)
	}
	k.write(".dlwb-node/notes", "of node 1")
	k.round(1)
	if got := k.home(1); got != "node1/notes=of node 1" {
		t.Errorf("of replica 1: %.200s", got)
	}
}

// age has all that was written be old.
func (k *keeping) age() {
	k.Helper()
	time.Sleep(2100 * time.Millisecond) // the time of a change of state can't be set
}

// A volume has the clock of its server. Here the pod's is an hour ahead of it, as what
// it has written by its own clock, and the number of its rounds, say.
func TestAFileOnAVolumeWithAnotherClockComesHome(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is missing: apt-get install python3")
	}
	k := newKeeping(t, "outputs\n")
	ahead := time.Now().Add(time.Hour)
	k.write("unpacked", "")
	if err := os.Chtimes(filepath.Join(k.work, "unpacked"), ahead, ahead); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "two", "three"} {
		k.write("code/outputs/model", text)
		k.round(0)
		if got := k.home(0); got != "outputs/model="+text {
			t.Errorf("%q came, not %s", got, text)
		}
		list := fmt.Sprintf(`{"at":%d,"pod":"pod"}`, ahead.UnixNano())
		if err := os.WriteFile(filepath.Join(k.base, "0", keptList), []byte(list), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A path of the results may be a link to a directory elsewhere, such as on a volume.
func TestALinkToADirectoryIsAPathOfResults(t *testing.T) {
	for _, python := range []bool{true, false} {
		k := newKeeping(t, "linked\nlinked2/\n")
		volume := t.TempDir()
		if err := errors.Join(os.WriteFile(filepath.Join(volume, "model"), []byte("m"), 0o600), os.Symlink(volume, filepath.Join(k.work, "code/linked"))); err != nil {
			t.Fatal(err)
		}
		if !python {
			k.path = noPython(t)
		}
		k.round(0)
		if got := k.home(0); got != "linked/model=m" {
			t.Errorf("with Python %v: %q", python, got)
		}
	}
}

// noPython is a PATH with what keep.sh needs where there is no Python.
func noPython(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"sh", "tar", "dirname"} {
		at, err := exec.LookPath(name)
		if err == nil {
			err = os.Symlink(at, filepath.Join(dir, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// An image without Python has tar.
func TestWhatAPodWroteComesHomeWithoutPython(t *testing.T) {
	k := newKeeping(t, "outputs\nmissing\n")
	k.write("code/outputs/x", "one")
	k.write(".dlwb-node/notes", "mine")
	k.path = noPython(t)
	k.round(0)
	if got := k.home(0); got != "node0/notes=mine outputs/given.txt=came with the code outputs/x=one" {
		t.Error(got)
	}
}

// A round that does not say of a file what it is, or whose file is not here, changes
// nothing, and the next one asks for all.
func TestARoundThatDoesNotFitIsThrownAway(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is missing: apt-get install python3")
	}
	k := newKeeping(t, "outputs\n")
	k.write("code/outputs/x", "one")
	k.round(0)
	if err := os.WriteFile(filepath.Join(k.base, "0/outputs/x"), []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(k.base)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := root.Mkdir("new-x", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := root.WriteFile("new-x/"+keptList, []byte(`{"at":5,"files":[["outputs/x",3],["../../evil",3]]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	s := staging{root: root, old: "0", now: "new-x"}
	if err := s.settle("pod", nil); err == nil || !strings.Contains(err.Error(), "another size") {
		t.Errorf("settled: %v", err)
	}
	if l, err := s.list("0"); err == nil {
		t.Errorf("the next round asks for what came since %d", l.At)
	}
	if got := k.home(0); got != "outputs/x=changed" {
		t.Error(got)
	}
	k.round(0)
	if got := k.home(0); got != "outputs/x=one" {
		t.Error(got)
	}
}

// A connection that was cut looks well to who runs a command in a pod: what has no end
// takes the place of nothing.
func TestWhatHasNoEndTakesThePlaceOfNothing(t *testing.T) {
	k := newKeeping(t, "outputs\n")
	k.write("code/outputs/model.pt", "weights")
	k.path = noPython(t)
	k.round(0)
	whole := k.home(0)
	root, err := os.OpenRoot(k.base)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, came := range map[string]func(*tar.Writer){
		"nothing":    func(*tar.Writer) {},
		"half of it": func(w *tar.Writer) { _ = w.WriteHeader(&tar.Header{Name: "outputs/new.pt", Mode: 0o644}) },
	} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		came(w)
		_ = w.Flush()
		if err := root.Mkdir("new-"+name, 0o700); err != nil {
			t.Fatal(err)
		}
		s := staging{root: root, old: "0", now: "new-" + name}
		skipped, err := s.fill(&b)
		if err == nil {
			err = s.settle("pod", skipped)
		}
		if err == nil {
			t.Errorf("%s is taken for all", name)
		}
		if now := k.home(0); now != whole {
			t.Errorf("%s: here is %q, and was %q", name, now, whole)
		}
	}
}

// What is here of a replica is one dlwb's at a time, so that a look of before never takes
// the place of a later one; and no replica waits for what another one sends.
func TestAReplicaIsBroughtByOneAndWaitsForNoOther(t *testing.T) {
	life := cloud.Life{Dir: t.TempDir()}
	of := func(number int) *replica { return &replica{life: life, ref: ref{Name: "job"}, number: number} }
	if err := os.MkdirAll(filepath.Dir(of(0).stage()), 0o700); err != nil {
		t.Fatal(err)
	}
	soon, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := of(0).alone(soon, func() error {
		if err := of(1).alone(soon, func() error { return nil }); err != nil {
			t.Errorf("another replica: %v", err)
		}
		short, cancel := context.WithTimeout(soon, 200*time.Millisecond)
		defer cancel()
		return of(0).alone(short, func() error { return errors.New("it is in use") })
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the same one: %v", err)
	}
	if err := of(0).alone(soon, func() error { return nil }); err != nil {
		t.Error(err)
	}
	none := &replica{life: cloud.Life{Dir: filepath.Join(t.TempDir(), "gone")}, ref: ref{Name: "job"}}
	if err := none.alone(soon, func() error { return nil }); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a directory: %v", err)
	}
}

// A pod does not stay for its results, with its GPUs, past the deadline of its job: a
// controller that looks only when something changes would not end it.
func TestAPodStaysForItsResultsUntilItsDeadlineAtMost(t *testing.T) {
	dir := t.TempDir()
	packed, err := payload(cloud.Code{}, false, []pack.Node{{Procs: []pack.Proc{{Ranks: []int{0}, Argv: []string{"sh", "-c", `echo x >"$DLWB_RESULTS/x"; exit 3`}}}}}, nil)
	if err == nil {
		err = errors.Join(os.MkdirAll(filepath.Join(dir, "given"), 0o755), os.MkdirAll(filepath.Join(dir, "work"), 0o755))
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "given/payload.tar.gz"), packed, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	last := filepath.Join(dir, "termination-log")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "sh", "-c", strings.NewReplacer("/dev/termination-log", last, "/dlwb/", dir+"/").Replace(launchSh))
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "DLWB_INDEX=0", "DLWB_FIRST=0", "DLWB_HOLD=600", "DLWB_GRACE=1", "DLWB_DEADLINE=2"}
	c.WaitDelay = time.Second // the sleep of its lease has the pipe
	said, err := c.CombinedOutput()
	if c.ProcessState.ExitCode() != 3 || ctx.Err() != nil {
		t.Errorf("it ended with %v, %v: %s", c.ProcessState, err, said)
	}
	if note, err := os.ReadFile(last); !strings.Contains(string(note), "not brought home") {
		t.Errorf("it noted %q, %v", note, err)
	}
}

// A file that can't be put here is said, in each round, and keeps none of the others
// from coming.
func TestAFileThatCannotBePutHereKeepsNoOtherFromComing(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is missing: apt-get install python3")
	}
	k := newKeeping(t, "outputs\n")
	bad := filepath.Join(k.work, "code/outputs/\xff\xfe.txt")
	if err := os.WriteFile(bad, []byte("x"), 0o600); err != nil {
		t.Skip("this file system has names of UTF-8 alone: " + err.Error())
	}
	for i := range 3 {
		k.write("code/outputs/of"+strconv.Itoa(i), "x")
		k.round(0)
		root, err := os.OpenRoot(filepath.Join(k.base, "0"))
		if err != nil {
			t.Fatal(err)
		}
		l, err := staging{root: root}.list(".")
		if root.Close(); err != nil || len(l.Skipped) != 1 || !strings.Contains(l.Skipped[0], ".txt: ") {
			t.Errorf("round %d skipped %q, %v", i, l.Skipped, err)
		}
	}
	if got := k.home(0); got != "outputs/of0=x outputs/of1=x outputs/of2=x" {
		t.Error(got)
	}
	// One that comes later costs a round.
	k.write("code/outputs/\xfd.txt", "x")
	if _, err := k.try(0); err == nil {
		t.Error("what did not come before, and is not here, is taken for what is")
	}
	k.round(0)
	k.round(0)
}

// What a pod lists is read up to a bound, whatever it is.
func TestAListWithoutEndIsNotRead(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := errors.Join(root.WriteFile(keptList, []byte("{}"), 0o600), os.Truncate(filepath.Join(dir, keptList), mostList+1)); err != nil {
		t.Fatal(err)
	}
	if _, err := (staging{root: root}).list("."); !errors.Is(err, plainfile.ErrTooLarge) {
		t.Errorf("it was read: %v", err)
	}
}

// What a round that was killed has left goes with the next one of its replica, and of no
// other.
func TestWhatAKilledRoundLeftGoes(t *testing.T) {
	k := newKeeping(t, "outputs\n")
	k.path = noPython(t)
	var left []string
	for range 2 {
		for _, n := range []string{"1", "11"} {
			s, err := newStaging(filepath.Join(k.base, n)) // and nobody closes it
			if err != nil {
				t.Fatal(err)
			}
			_ = s.root.Close()
			left = append(left, s.now)
		}
	}
	k.round(1)
	k.round(1)
	all, err := os.ReadDir(k.base)
	var names []string
	for _, e := range all {
		names = append(names, e.Name())
	}
	if want := "1 " + left[3]; strings.Join(names, " ") != want || err != nil {
		t.Errorf("there are %q, %v, want %s", names, err, want)
	}
}
