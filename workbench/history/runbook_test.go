package history

import (
	"strings"
	"testing"

	"github.com/dlwb/dlwb/workbench/event"
)

// A character that is not shown may not stand between the backticks that end a
// block: without it they do.
func TestNothingInABlockOfCodeEndsIt(t *testing.T) {
	for _, text := range []string{"a\n```\nb", "a\n`\u200b``\nb", "a\n`\x1b[31m``\nb", "a\n````\nb\n`\u202e``"} {
		b := &book{}
		b.code("", text)
		lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		fence := lines[0]
		if lines[len(lines)-1] != fence || strings.Count(b.String(), fence) != 2 {
			t.Errorf("%q became %q", text, b.String())
		}
	}
}

// What a runbook says to do by hand is done without dlwb, of which no node has
// anything left, and without the Python that went with the cluster.
func TestWhatIsDoneByHandNeedsNothingOfDlwbs(t *testing.T) {
	const py = "/state/local/x/node0/home/dlwb/x/venv/bin/python"
	const rank = "sh '~/.dlwb/bin/rank' '~/.dlwb/runs/r1' "
	for _, c := range []struct{ engine, command, want string }{
		{"torchrun", py + " -m torch.distributed.run --nnodes=1 --log_dir '~/.dlwb/runs/r1/torchrun' --no_python " + rank + py + " train.py --log_dir logs",
			".venv/bin/python -m torch.distributed.run --nnodes=1 --no_python .venv/bin/python train.py --log_dir logs"},
		{"accelerate", py + " -m accelerate.commands.launch --no_python " + rank + py + " -m pkg", ".venv/bin/python -m accelerate.commands.launch --no_python .venv/bin/python -m pkg"},
		{"plain", rank + py + " train.py 'a b'", "RANK=0 LOCAL_RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 .venv/bin/python train.py 'a b'"},
		{"mpi", "sh '~/.dlwb/runs/r1/mpirun.sh' -np 2 -H localhost:1,node1:1 sh -c 'cd x && exec \"$DLWB_AGENT\" rank \"$@\"' sh " + py + " train.py",
			"mpirun -np 2 -H localhost:1,node1:1 .venv/bin/python train.py"},
	} {
		r := Recipe{Engine: c.engine, Provider: "local", Python: "3.11.2 " + py, Packages: []string{"torch==2.4.0"}, Ranks: []event.RankInfo{{Command: c.command}}}
		if got, want := r.CommandsByHand()[1], "# node 0\n"+c.want; got != want {
			t.Errorf("%s:\n got %s\nwant %s", c.engine, got, want)
		}
	}
}

func TestARepositoryIsClonedByItsTop(t *testing.T) {
	for _, c := range []struct{ prefix, remote, want string }{{"", "", "/w/repo/a/b"}, {"a/b", "", "/w/repo"}, {"a/b", "https://example.org/r.git", "https://example.org/r.git"}} {
		r := Recipe{CodeDir: "/w/repo/a/b", Git: &GitState{Commit: "c", Remote: c.remote, Prefix: c.prefix}}
		if got, want := r.CommandsByHand()[0], "git clone "+c.want+" code && cd code"; got != want {
			t.Errorf("%q: %s, want %s", c.prefix, got, want)
		}
	}
}

func TestAFactIsOneLineOfText(t *testing.T) {
	b := &book{}
	b.fact("Branch", "a|b\n# forged\x1b]0;x\x07 <b> \u202e`c`")
	if got, want := b.String(), "- **Branch**: a\\|b # forged &lt;b> 'c'\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
