package workbench

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/testprogram"
	"github.com/dlwb/dlwb/internal/trusttest"
	"github.com/dlwb/dlwb/workbench/history"
	"github.com/dlwb/dlwb/workbench/planning"
)

// repository is a git repository with a project in a directory of it.
type repository struct {
	t   *testing.T
	dir string
}

func newRepository(t *testing.T) repository {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("NOT RUN: there is no git here")
	}
	r := repository{t, t.TempDir()}
	r.git("init", "-q", "-b", "main")
	r.write("proj/train.py", "print(1)\n")
	r.write("proj/dlwb.yaml", "name: c\nprovider: local\nrun: {command: train.py, engine: plain}\n")
	r.write("other/x", "x\n")
	r.commit()
	return r
}

func (r repository) git(args ...string) {
	r.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
	cmd.Dir = r.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func (r repository) commit() {
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "state")
}

func (r repository) write(name, text string) { r.put(name, text, 0o644) }

// program writes what is executed.
func (r repository) program(name, text string) { r.put(name, text, 0o755) }

func (r repository) put(name, text string, mode os.FileMode) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := testprogram.Write(path, []byte(text), mode); err != nil {
		r.t.Fatal(err)
	}
}

func TestTheStateOfTheCodeIsWhatRanAndNoSecret(t *testing.T) {
	r := newRepository(t)
	r.git("remote", "add", "origin", "https://me:hunter2@example.com/x.git")
	r.write("proj/train.py", "print(2)\n")
	r.write("proj/new file.py", "token = 'hf_abcdefghijklmnopqrstuvwxyz'\n")
	r.write("proj/.env", "KEY=secret-value\n")
	r.write("proj/weights.bin", strings.Repeat("\x00", 256<<10+1))
	r.write("other/x", "not sent\n")
	before := r.status()
	g, notes := history.ReadGit(context.Background(), filepath.Join(r.dir, "proj"))
	if g == nil {
		t.Fatal(notes)
	}
	if g.Branch != "main" || g.Prefix != "proj" || g.Remote != "https://example.com/x.git" || !g.Dirty || len(g.Commit) < 40 {
		t.Errorf("got %+v", g)
	}
	for _, want := range []string{"+print(2)", "b/proj/new file.py", "+token = '•••'"} {
		if !strings.Contains(g.Diff, want) {
			t.Errorf("%q is not in\n%s", want, g.Diff)
		}
	}
	for _, bad := range []string{"hf_abc", "secret-value", "not sent", "weights"} {
		if strings.Contains(g.Diff, bad) {
			t.Errorf("%q is in\n%s", bad, g.Diff)
		}
	}
	if said := strings.Join(notes, " "); !g.Partial || !strings.Contains(said, ".env") || !strings.Contains(said, "weights.bin") || !strings.Contains(said, "secrets") {
		t.Errorf("notes: %v", notes)
	}
	if after := r.status(); after != before {
		t.Errorf("the repository was changed: %q, %q", before, after)
	}
	if g, notes := history.ReadGit(context.Background(), t.TempDir()); g != nil || len(notes) != 1 {
		t.Errorf("of no repository: %+v, %v", g, notes)
	}
}

func (r repository) status() string {
	cmd := exec.Command("git", "status", "--porcelain")
	cmd.Dir = r.dir
	out, _ := cmd.Output()
	return string(out)
}

// thisOnly is a provider for plans that are not carried out.
type thisOnly struct{ cloud.Provider }

func (thisOnly) Kind() string { return "local" }

func (thisOnly) Check(context.Context, cloud.Spec) cloud.Preflight { return cloud.Preflight{} }

func TestARerunChecksOutTheCodeOfThen(t *testing.T) {
	r := newRepository(t)
	proj := filepath.Join(r.dir, "proj")
	w, err := Open(Options{Dir: t.TempDir(), Providers: []cloud.Provider{thisOnly{}}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	begin(t, w, "c", "r1")
	r.write("proj/train.py", "print(2)\n")
	r.write("proj/new.py", "x = 1\n")
	ctx := context.Background()
	recipe := history.Recipe{ProfilePath: filepath.Join(proj, "dlwb.yaml"), CodeDir: proj, Engine: "plain", Provider: "local"}
	text, _ := os.ReadFile(recipe.ProfilePath)
	recipe.Profile, recipe.ProfileHash = string(text), planning.FileHash(recipe.ProfilePath)
	recipe.Git, _ = history.ReadGit(ctx, proj)
	if err := w.putRecipe("r1", recipe); err != nil {
		t.Fatal(err)
	}
	trusttest.Trust(w.dir, proj)
	same, err := w.plans.PlanRerun(ctx, "r1", true)
	if err != nil || len(same.Differs) > 0 || same.Checkout != "" {
		t.Fatalf("nothing differs: %+v, %v", same, err)
	}
	r.write("proj/train.py", "print(3)\n")
	r.write("proj/dlwb.yaml", string(text)+"limits: {stall: 1h}\n")
	r.commit()
	again, err := w.plans.PlanRerun(ctx, "r1", false)
	if err != nil || again.Checkout != "" || !strings.Contains(strings.Join(again.Differs, "; "), "the commit is") || !strings.Contains(strings.Join(again.Differs, "; "), "profile") {
		t.Errorf("as it is now: %+v, %v", again, err)
	}
	again, err = w.plans.PlanRerun(ctx, "r1", true)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"train.py": "print(2)\n", "new.py": "x = 1\n"} {
		if b, err := os.ReadFile(filepath.Join(again.Plan.Code.Dir, name)); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	if g, _ := history.ReadGit(ctx, again.Plan.Code.Dir); g.Commit != recipe.Git.Commit || g.DiffHash != recipe.Git.DiffHash {
		t.Errorf("the checkout is %+v, want %+v", g, recipe.Git)
	}
	if b, _ := os.ReadFile(filepath.Join(proj, "train.py")); string(b) != "print(3)\n" {
		t.Errorf("the working tree was changed: %q", b)
	}
	dir := again.Checkout
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the checkout is left: %v", err)
	}
	recipe.Git.Commit = strings.Repeat("0", 40)
	if err := w.putRecipe("r1", recipe); err != nil {
		t.Fatal(err)
	}
	if _, err := w.plans.PlanRerun(ctx, "r1", true); err == nil || !strings.Contains(err.Error(), "check out the code of run r1") {
		t.Errorf("a commit that is not there: %v", err)
	}
	if left, _ := os.ReadDir(filepath.Join(w.dir, "worktrees")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestNewsOfPackagesAreNamedAndCounted(t *testing.T) {
	if got := history.PackageNews([]string{"a==1", "b==1", "c @ git+https://x@1"}, []string{"a==2", "b==1", "d==1"}, 2); got != "a 1 → 2, c git+https://x@1 → none, and 1 more" {
		t.Errorf("got %s", got)
	}
}
