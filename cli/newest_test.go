package cli

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// frameworks is the Python of an environment with PyTorch, JupyterLab and
// TensorBoard from PyPI.
func frameworks(t *testing.T) string {
	t.Helper()
	python := os.Getenv("DLWB_TEST_FRAMEWORKS")
	if python == "" {
		t.Skip("needs an environment with PyTorch, JupyterLab and TensorBoard from PyPI: make test-frameworks makes one")
	}
	return python
}

func TestJupyterLabOfTheEnvironmentServesItsPageAndRunsACell(t *testing.T) {
	python := frameworks(t)
	b := newBedAlone(t)
	b.up("environment: {python: " + python + "}\n")
	_, _, page := b.forward("jupyter")
	bare := *page
	bare.Path, bare.RawQuery = "/lab", ""
	if status, _ := answerTo(t, bare.String()); status != http.StatusForbidden {
		t.Errorf("without a ticket: %d", status)
	}
	v := b.visit(page)
	if status, text := v.get("/lab"); status != http.StatusOK || !strings.Contains(text, "<title>JupyterLab</title>") {
		t.Errorf("the page of JupyterLab: %d %.300s", status, text)
	}
	s, status := v.dial(v.kernel(), v.base)
	if status != http.StatusSwitchingProtocols {
		t.Fatalf("a kernel's messages: %d", status)
	}
	want, err := exec.Command(python, "-c", "import torch; print(torch.__version__)").Output()
	if err != nil {
		t.Fatal(err)
	}
	if said := s.cell("import torch; print(torch.__version__, flush=True)"); strings.TrimSpace(said) != strings.TrimSpace(string(want)) {
		t.Errorf("the kernel's PyTorch is %q, that of the environment %q", said, want)
	}
}

func TestTensorBoardOfTheEnvironmentShowsWhatPyTorchWrote(t *testing.T) {
	python := frameworks(t)
	b := newBedAlone(t)
	b.up("environment: {python: " + python + "}\n")
	write := exec.Command(python, "-c", `from torch.utils.tensorboard import SummaryWriter
w = SummaryWriter("logs/first")
for step in range(5):
    w.add_scalar("loss/train", 1 / (step + 1), step)
w.close()`)
	write.Dir = filepath.Join(b.nodeHome(0), "dlwb", "bed", "code")
	if out, err := write.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, _, page := b.forward("tensorboard")
	bare := *page
	bare.RawQuery = ""
	if status, _ := answerTo(t, bare.String()); status != http.StatusForbidden {
		t.Errorf("without a ticket: %d", status)
	}
	v := b.visit(page)
	if status, text := v.get("/"); status != http.StatusOK || !strings.Contains(text, "TensorBoard") {
		t.Errorf("its page: %d %.300s", status, text)
	}
	if status, text := v.get("/data/plugin/scalars/scalars?run=logs%2Ffirst&tag=loss%2Ftrain"); status != http.StatusOK || !strings.Contains(text, "0.5") {
		t.Errorf("the values: %d %.300s", status, text)
	}
}
