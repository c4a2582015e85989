package environment

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/testprogram"
)

// fakeTorch writes a PyTorch that consists of the one module at fault.
func fakeTorch(t *testing.T, field string) string {
	t.Helper()
	dir := t.TempDir()
	module := filepath.Join(dir, "torch", "distributed", "_shard", "sharded_tensor")
	if err := os.MkdirAll(module, 0o755); err != nil {
		t.Fatal(err)
	}
	for d := module; d != dir; d = filepath.Dir(d) {
		write(t, filepath.Join(d, "__init__.py"), "")
	}
	write(t, filepath.Join(dir, "torch", "version.py"), "__version__ = '1.13.1'\n")
	write(t, filepath.Join(module, "metadata.py"), `from dataclasses import dataclass, field

@dataclass
class TensorProperties:
    pin_memory: bool = False

@dataclass
class ShardedTensorMetadata:
    tensor_properties: TensorProperties = `+field+"\n")
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// program writes what is executed.
func program(t *testing.T, path, text string) {
	t.Helper()
	if err := testprogram.Write(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

const (
	faulty     = "field(default=TensorProperties())"
	sound      = "field(default_factory=TensorProperties)"
	useIt      = "import torch.distributed._shard.sharded_tensor.metadata as m; print(m.ShardedTensorMetadata().tensor_properties.pin_memory, type(m.__spec__.loader).__name__)"
	needs311   = "sys.version_info >= (3, 11) and __import__('venv')"
	install311 = "apt-get install python3-venv, on a system with Python 3.11 or newer"
)

func TestTheFaultOfPyTorchIsMendedWhereItIs(t *testing.T) {
	python(t, needs311, install311)
	l := newLocal(t, bare(t))
	torch := fakeTorch(t, faulty)
	l.env = append(l.env, "PYTHONPATH="+torch)
	r := l.must(Spec{Kind: System})
	compat := filepath.Join(l.home, compatDir)
	if want := []string{"PYTHONPATH=" + compat + ":" + torch}; !slices.Equal(r.Env, want) {
		t.Errorf("env is %q, want %q", r.Env, want)
	}
	contains(t, r.Mended, "PyTorch 1.13.1 has a fault")
	for range 2 { // the second time with compiled files in the cache
		if got := l.python(r, useIt); got != "False Mended" {
			t.Errorf("the module says %q", got)
		}
	}
	if r = l.must(Spec{Kind: System}); l.trips != 1 || len(r.Env) != 1 {
		t.Errorf("the second time took %d round trips, env %q", l.trips, r.Env)
	}
	write(t, filepath.Join(compat, "sitecustomize.py"), "# dlwb compat old\n")
	r = l.must(Spec{Kind: System})
	if got := l.python(r, useIt); got != "False Mended" {
		t.Errorf("after an older mend was there the module says %q", got)
	}
}

func TestLookingAtANodeChangesNothing(t *testing.T) {
	l := newLocal(t, bare(t))
	l.env = append(l.env, "PYTHONPATH="+fakeTorch(t, faulty))
	r, err := Probe(t.Context(), l, "", "")
	if err != nil {
		t.Fatal(err)
	}
	if r.Torch != "1.13.1" || r.Home != l.home || r.Kind != System {
		t.Errorf("got %+v", r)
	}
	if left, err := os.ReadDir(l.home); err != nil || len(left) > 0 {
		t.Errorf("the home directory has %v, %v", left, err)
	}
}

func TestASoundPyTorchIsLeftAlone(t *testing.T) {
	l := newLocal(t, bare(t))
	torch := fakeTorch(t, sound)
	l.env = append(l.env, "PYTHONPATH="+torch)
	r := l.must(Spec{Kind: System})
	if r.Torch != "1.13.1" || len(r.Env) != 0 || r.Mended != "" {
		t.Errorf("got %+v", r)
	}
	noFile(t, filepath.Join(l.home, ".dlwb"))

	compat := t.TempDir()
	write(t, filepath.Join(compat, "sitecustomize.py"), sitecustomize)
	r.Env = []string{"PYTHONPATH=" + compat + ":" + torch}
	if got := l.python(r, useIt); got != "False SourceFileLoader" {
		t.Errorf("with the mend in front the module says %q", got)
	}
}

func TestTheMendRunsTheNextSitecustomizeAndImportsNothingHeavy(t *testing.T) {
	l := newLocal(t, bare(t))
	r := l.must(Spec{Kind: System})
	compat, other := t.TempDir(), t.TempDir()
	write(t, filepath.Join(compat, "sitecustomize.py"), sitecustomize)
	write(t, filepath.Join(other, "sitecustomize.py"), "mark = 'mine'\n")
	r.Env = []string{"PYTHONPATH=" + compat + ":" + other}
	got := l.python(r, "import sitecustomize, sys; print(sitecustomize.mark, sitecustomize.__file__, 'torch' in sys.modules, 'importlib.util' in sys.modules)")
	if want := "mine " + other + "/sitecustomize.py False False"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}

	write(t, filepath.Join(other, "sitecustomize.py"), "raise ValueError('mine')\n")
	if got := l.python(r, "print('alive')"); !strings.Contains(got, "ValueError: mine") || !strings.HasSuffix(got, "alive") {
		t.Errorf("a failing sitecustomize gave %q", got)
	}
}

func TestThePythonWithPyTorchIsFoundBehindOneWithout(t *testing.T) {
	t.Parallel()
	torch := python(t, "__import__('importlib.util', fromlist=['x']).find_spec('torch')", "apt-get install python3-torch")
	first := bare(t)
	l := newLocal(t, first, filepath.Dir(torch))
	r := l.must(Spec{Kind: System})
	if r.Torch == "" || strings.HasPrefix(r.Python, first) {
		t.Errorf("got %+v", r)
	}
	contains(t, r.Text, " with PyTorch "+r.Torch+"; the python3 on PATH (", ") has no PyTorch")
	said := l.python(r, "import torch.distributed._shard.sharded_tensor.metadata as m; m.ShardedTensorMetadata(); import torch; print(torch.__version__)")
	if said == "" {
		t.Error("PyTorch did not say its version")
	}

	// A virtual environment on top of it sees that PyTorch, mended.
	r = l.must(Spec{Kind: Venv, Cluster: "c", Content: "torch\n"})
	if r.Torch == "" || r.Kind != Venv {
		t.Errorf("the virtual environment gave %+v", r)
	}
	if again := l.python(r, "import torch.distributed._shard.sharded_tensor.metadata as m; m.ShardedTensorMetadata(); import torch; print(torch.__version__)"); again != said {
		t.Errorf("PyTorch is %s inside and %s outside", again, said)
	}
}
