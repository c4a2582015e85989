package hostsstory

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/containers"
	"github.com/dlwb/dlwb/internal/podrig"
	"github.com/dlwb/dlwb/internal/sshdtest"
	"github.com/dlwb/dlwb/internal/trusttest"
	"github.com/dlwb/dlwb/workbench"
	"github.com/dlwb/dlwb/workbench/event"
)

const boxed = `
import os
assert open("/etc/dlwb-one").read() == "1", "this is another image"
print("rank", os.environ["RANK"], "is in the container")
`

// Ranks on hosts run in an image that each host's real podman builds. The hosts are given
// back without any of its containers, also of those that never began; nobody else's is
// touched, and the receipt says who was asked.
func TestContainersOfHostsGoWithTheCluster(t *testing.T) {
	env := podrig.Images(t)
	// Killed between what it makes and what it starts, when dlwb asks the image for its packages.
	cut := podrig.Wrapped(t, env, `case "$*" in run*' -') shift; /usr/bin/podman create "$@" && kill -9 $$ ;; esac`)
	a, b, bastion := sshdtest.Start(t, sshdtest.PathFirst(podrig.Wrapped(t, env, ""))), sshdtest.Start(t, sshdtest.PathFirst(cut)), sshdtest.Start(t)
	dir := t.TempDir()
	sshFiles(t, dir, map[string]*sshdtest.Server{"gpu1": a, "gpu2": b, "bastion": bastion})
	t.Setenv("DLWB_SSH_CONFIG", filepath.Join(dir, "config"))
	code := filepath.Join(dir, "code")
	write(t, filepath.Join(code, "train.py"), boxed)
	write(t, filepath.Join(code, "one"), "1")
	write(t, filepath.Join(code, "Dockerfile"), "FROM "+podrig.PythonImage+"\nCOPY one /etc/dlwb-one\n")
	write(t, filepath.Join(code, "dlwb.yaml"), "name: demo\nprovider: hosts\nmachines: {hosts: [gpu1, gpu2]}\nenvironment: {docker: Dockerfile}\nrun: {engine: plain, command: train.py}\n")
	w := openDesk(t, dir)
	other, err := exec.Command("podman", "create", "--label", "dlwb=/elsewhere/dlwb/demo/container", podrig.PythonImage, "true").Output()
	if err != nil {
		t.Fatal(err)
	}
	there := func() string {
		out, err := exec.Command("podman", "ps", "--all", "--no-trunc", "--format", "{{.ID}} {{.Status}}").Output()
		if err != nil {
			t.Error(err)
		}
		return strings.TrimSpace(string(out))
	}
	trusttest.Trust(w.Dir(), code)
	plan, err := w.Plans().Plan(t.Context(), filepath.Join(code, "dlwb.yaml"))
	if err != nil || !plan.OK() {
		t.Fatalf("%v %+v", err, plan.Findings)
	}
	out, err := w.Do(t.Context(), plan, workbench.Goal{})
	if err != nil || out.Ended == nil || out.Ended.Verdict != event.Succeeded {
		t.Fatalf("%v %+v", err, out)
	}
	for rank, want := range []string{"rank 0 is in the container", "rank 1 is in the container"} {
		log := make([]byte, 1000)
		if n, _ := w.ReadLog(out.Run, rank, 0, log); !strings.Contains(string(log[:n]), want) {
			t.Errorf("the log of rank %d is %q", rank, log[:n])
		}
	}
	if n := strings.Count(there(), " Created"); n != 2 {
		t.Errorf("%d containers were made and never began, of gpu2 and of somebody else:\n%s", n, there())
	}
	receipt, err := w.TearDown(t.Context(), "demo", false)
	if err != nil || !receipt.Proven() || len(receipt.Resources) != 2 {
		t.Errorf("%v %+v", err, receipt)
	}
	for _, r := range receipt.Resources {
		if !strings.Contains(r.Proof, containers.Proof) {
			t.Errorf("%+v", r)
		}
	}
	if got := there(); got != strings.TrimSpace(string(other))+" Created" {
		t.Errorf("left, or gone with them: %s", got)
	}
}
