package workbench

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/workbench/history"
)

// readEverywhere reads a repository in every way that dlwb has: its state, and
// the code of an older commit with a diff on top.
func readEverywhere(t *testing.T, code, older string) {
	t.Helper()
	ctx := context.Background()
	_, _ = history.ReadGit(ctx, code) // an attack may make it fail; what counts is what runs
	w, err := Open(Options{Dir: t.TempDir(), Providers: []cloud.Provider{thisOnly{}}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	begin(t, w, "c", "r1")
	recipe := history.Recipe{ProfilePath: filepath.Join(code, "dlwb.yaml"), CodeDir: code, Engine: "plain", Provider: "local",
		Profile: "name: c\nprovider: local\nrun: {command: train.py, engine: plain}\n",
		Git:     &history.GitState{Commit: older, Diff: "--- a/proj/extra.py\n+++ b/proj/extra.py\n@@ -0,0 +1 @@\n+x = 1\n", Prefix: "proj"}}
	if err := w.putRecipe("r1", recipe); err != nil {
		t.Fatal(err)
	}
	if again, err := w.plans.PlanRerun(ctx, "r1", true); err == nil {
		_, _ = history.ReadGit(ctx, again.Plan.Code.Dir)
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	}
}

func (r repository) output(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = r.dir
	out, err := cmd.Output()
	if err != nil {
		r.t.Fatalf("git %v: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}

func (r repository) config(pairs ...string) {
	for i := 0; i < len(pairs); i += 2 {
		r.git("config", "--add", pairs[i], pairs[i+1])
	}
}

// forget removes the object of a file, as in a clone that left it with its
// remote.
func (r repository) forget(commit, path string) {
	hash := r.output("rev-parse", commit+":"+path)
	if err := os.Remove(filepath.Join(r.dir, ".git", "objects", hash[:2], hash[2:])); err != nil {
		r.t.Fatal(err)
	}
}

// promisor makes a repository ask its remote for what it lacks.
func (r repository) promisor(url string) {
	r.forget("HEAD", "proj/train.py")
	r.forget("HEAD~", "proj/train.py")
	r.config("remote.origin.url", url, "remote.origin.promisor", "true", "remote.origin.partialclonefilter", "blob:none", "extensions.partialClone", "origin")
	r.git("config", "core.repositoryFormatVersion", "1")
}

// gitAttacks are settings of a repository that run a program when git reads it.
// mark is a command line that leaves a mark.
var gitAttacks = map[string]func(t *testing.T, r repository, mark string){
	"a filter that cleans": func(_ *testing.T, r repository, mark string) {
		r.config("filter.x.clean", mark+"; cat", "filter.x.smudge", mark+"; cat")
	},
	"a filter that is a process": func(_ *testing.T, r repository, mark string) {
		r.config("filter.x.process", mark, "filter.x.required", "true")
	},
	"a filter in an included file": func(_ *testing.T, r repository, mark string) {
		r.write("more", "[filter \"x\"]\n\tclean = \""+mark+"; cat\"\n")
		r.config("include.path", "../more")
	},
	"a filter in an included file for this place": func(_ *testing.T, r repository, mark string) {
		r.write("more", "[filter \"x\"]\n\tclean = \""+mark+"; cat\"\n")
		r.config("includeIf.gitdir:/.path", "../more")
	},
	"a filter in the settings of the working tree": func(_ *testing.T, r repository, mark string) {
		r.config("extensions.worktreeConfig", "true")
		r.git("config", "--worktree", "filter.x.clean", mark+"; cat")
	},
	"fsmonitor and hooks": func(_ *testing.T, r repository, mark string) {
		r.config("core.fsmonitor", mark, "core.hooksPath", "../hooks")
		for _, hook := range []string{"post-checkout", "post-index-change", "fsmonitor-watchman", "reference-transaction", "pre-auto-gc"} {
			for _, dir := range []string{"hooks", ".git/hooks"} {
				r.program(dir+"/"+hook, "#!/bin/sh\n"+mark+"\n")
			}
		}
	},
	"programs that show": func(_ *testing.T, r repository, mark string) {
		r.config("diff.external", mark, "diff.x.textconv", mark+"; cat", "diff.x.command", mark, "core.pager", mark, "pager.diff", mark,
			"pager.status", mark, "core.editor", mark, "sequence.editor", mark, "gpg.program", mark, "log.showSignature", "true",
			"core.alternateRefsCommand", mark, "interactive.diffFilter", mark, "core.askPass", mark, "alias.status", "!"+mark, "merge.x.driver", mark)
		r.write(".gitattributes", "* diff=x merge=x\n")
	},
	"a remote that is a program": func(_ *testing.T, r repository, mark string) {
		r.config("protocol.ext.allow", "always")
		r.promisor("ext::sh -c " + strings.ReplaceAll(mark, " ", "% "))
	},
	"a remote with a program of its own": func(_ *testing.T, r repository, mark string) {
		r.config("remote.origin.uploadpack", mark+"; false")
		r.promisor(r.dir)
	},
	"a remote by ssh": func(_ *testing.T, r repository, mark string) {
		r.config("core.sshCommand", mark+"; false")
		r.promisor("ssh://127.0.0.1/x")
	},
	"a remote through a proxy": func(_ *testing.T, r repository, mark string) {
		r.program("proxy", "#!/bin/sh\n"+mark+"\n")
		r.config("core.gitProxy", filepath.Join(r.dir, "proxy"))
		r.promisor("git://127.0.0.1/x")
	},
	"a remote that asks for a password": func(t *testing.T, r repository, mark string) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
		}))
		t.Cleanup(server.Close)
		r.config("credential.helper", "!"+mark)
		r.promisor(server.URL + "/x")
	},
	"a repository among the files": func(t *testing.T, r repository, mark string) {
		r.config("filter.x.clean", mark+"; cat", "core.worktree", filepath.Join(r.dir, "proj"))
		bare := filepath.Join(r.dir, "proj")
		for _, name := range []string{"HEAD", "config", "index", "objects", "refs"} {
			if err := os.Rename(filepath.Join(r.dir, ".git", name), filepath.Join(bare, name)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.RemoveAll(filepath.Join(r.dir, ".git")); err != nil {
			t.Fatal(err)
		}
	},
	"a .git that names another directory": func(t *testing.T, r repository, mark string) {
		r.config("filter.x.clean", mark+"; cat")
		if err := os.Rename(filepath.Join(r.dir, ".git"), filepath.Join(r.dir, "data")); err != nil {
			t.Fatal(err)
		}
		r.write(".git", "gitdir: data\n")
	},
	"a submodule with settings": func(t *testing.T, r repository, mark string) {
		sub := repository{t, filepath.Join(r.dir, "proj", "sub")}
		sub.write("f", "1\n")
		sub.git("init", "-q")
		sub.commit()
		r.git("add", "proj/sub")
		r.git("commit", "-q", "-m", "sub")
		sub.write(".gitattributes", "* filter=x\n")
		sub.write("f", "2\n")
		sub.config("filter.x.clean", mark+"; cat", "core.fsmonitor", mark)
		r.config("diff.submodule", "diff", "status.submoduleSummary", "true", "submodule.recurse", "true")
	},
	"variables": func(t *testing.T, r repository, mark string) {
		for name, value := range map[string]string{
			"GIT_CONFIG_COUNT": "2", "GIT_CONFIG_KEY_0": "filter.x.clean", "GIT_CONFIG_VALUE_0": mark + "; cat", "GIT_CONFIG_KEY_1": "core.fsmonitor",
			"GIT_CONFIG_VALUE_1": mark, "GIT_EXTERNAL_DIFF": mark, "GIT_SSH_COMMAND": mark, "GIT_PAGER": mark, "GIT_ASKPASS": mark, "GIT_EDITOR": mark,
			"GIT_CONFIG_PARAMETERS": "'filter.x.clean'='" + mark + "; cat'",
		} {
			t.Setenv(name, value)
		}
	},
}

func TestNothingThatARepositorysSettingsNameRuns(t *testing.T) {
	for name, attack := range gitAttacks {
		t.Run(name, func(t *testing.T) {
			r := newRepository(t)
			r.write(".gitattributes", "*.py filter=x\n")
			r.write("proj/train.py", "print(12)\n")
			r.commit()
			older := r.output("rev-parse", "HEAD~")
			r.write("proj/train.py", "print(123)\n")
			r.write("proj/new.py", "x\n")
			mark := filepath.Join(t.TempDir(), "mark")
			attack(t, r, "touch "+mark)
			readEverywhere(t, filepath.Join(r.dir, "proj"), older)
			if _, err := os.Lstat(mark); err == nil {
				t.Error("a program of the repository was run")
			}
		})
	}
}
