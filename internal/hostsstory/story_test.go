//go:build unix

// Package hostsstory goes through the life of an experiment on machines that
// one already has: real sshd, one of them behind a jump host.
package hostsstory

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/hosts"
	_ "github.com/dlwb/dlwb/internal/agentbuilt"
	"github.com/dlwb/dlwb/internal/sshdtest"
	"github.com/dlwb/dlwb/internal/testprogram"
	"github.com/dlwb/dlwb/internal/trusttest"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/workbench"
	"github.com/dlwb/dlwb/workbench/event"
)

// train says who it is, and leaves a result.
const train = `import os
print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"], "in", os.path.realpath("."),
      "on GPUs", os.environ.get("CUDA_VISIBLE_DEVICES", "all"), flush=True)
os.makedirs("outputs", exist_ok=True)
open("outputs/rank" + os.environ["RANK"], "w").write("done")
`

// profile has a place for the first host's directory. Of its four GPUs two are
// used, so that it has two ranks.
const profile = `name: demo
provider: hosts
machines: {hosts: [{host: gpu1, dir: %s, gpus: [1, 3]}, gpu2]}
run: {engine: plain, command: train.py}
results: {paths: [outputs/]}
`

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// executable writes what is executed.
func executable(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), testprogram.Write(path, []byte(text), 0o700)); err != nil {
		t.Fatal(err)
	}
}

// openDesk opens a workbench that knows hosts alone and has its state below dir.
func openDesk(t *testing.T, dir string) *workbench.Workbench {
	t.Helper()
	state := filepath.Join(dir, "state")
	w, err := workbench.Open(workbench.Options{Dir: state, Providers: []cloud.Provider{hosts.New(hosts.Options{Dir: filepath.Join(state, "hosts")})}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// sshFiles writes the ssh files of a laptop that knows three hosts.
func sshFiles(t *testing.T, dir string, servers map[string]*sshdtest.Server) {
	t.Helper()
	var config, known strings.Builder
	for name, s := range servers {
		host, port, _ := net.SplitHostPort(s.Addr)
		fmt.Fprintf(&config, "Host %s\n HostName %s\n Port %s\n User %s\n IdentityFile %s\n", name, host, port, s.User, s.KeyFile)
		fmt.Fprintf(&known, "[%s]:%s %s\n", host, port, s.HostKey)
	}
	fmt.Fprintf(&config, "Host gpu2\n ProxyJump bastion\nHost *\n IdentitiesOnly yes\n UserKnownHostsFile %s/known_hosts\n", dir)
	write(t, filepath.Join(dir, "config"), config.String())
	write(t, filepath.Join(dir, "known_hosts"), known.String())
}

func files(t *testing.T, dir string) string {
	t.Helper()
	out, err := exec.Command("find", dir, "-mindepth", "1").Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// ownSSH reaches the nodes with OpenSSH's own client, one of them through a
// jump host, and goes no further when a host shows another key.
func ownSSH(t *testing.T, w *workbench.Workbench, nodes ...*sshdtest.Server) {
	t.Helper()
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Log("NOT RUN: there is no OpenSSH client: apt-get install openssh-client")
		return
	}
	made, err := w.SSH().Config("demo")
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range nodes {
		name := fmt.Sprintf("node%d", i)
		out, err := exec.Command("ssh", "-F", made.File, "-o", "BatchMode=yes", name, "pwd").CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != s.Home {
			t.Errorf("ssh %s: %v %s", name, err, out)
		}
	}
	src, to := filepath.Join(t.TempDir(), "file"), "demo-1:copied"
	write(t, src, "by scp, through the jump host")
	if out, err := exec.Command("scp", "-F", made.File, "-o", "BatchMode=yes", src, to).CombinedOutput(); err != nil {
		t.Errorf("scp: %v %s", err, out)
	}
	copied := filepath.Join(nodes[1].Home, "copied")
	if text, err := os.ReadFile(copied); err != nil || string(text) != "by scp, through the jump host" {
		t.Errorf("copied: %q, %v", text, err)
	}
	_ = os.Remove(copied)
	known := filepath.Join(filepath.Dir(made.File), "demo.hosts")
	right, err := os.ReadFile(known)
	if err != nil {
		t.Fatal(err)
	}
	write(t, known, "dlwb-demo-0 "+sshdtest.MakeKey(t, filepath.Join(t.TempDir(), "other"))+"\n")
	out, err := exec.Command("ssh", "-F", made.File, "-o", "BatchMode=yes", "node0", "pwd").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "HOST IDENTIFICATION HAS CHANGED") {
		t.Errorf("with another host key: %v %s", err, out)
	}
	write(t, known, string(right))
}

// reverse leads from the head to a server here.
func reverse(t *testing.T, w *workbench.Workbench) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "home") }))
	defer server.Close()
	opened, err := w.Tunnels().Reverse(t.Context(), "demo", 0, server.Listener.Addr().(*net.TCPAddr).Port)
	if err != nil || opened.Kind != event.ForwardReverse || opened.Note != "" {
		t.Fatalf("%+v, %v", opened, err)
	}
	n, err := w.Node("demo", 0)
	if err != nil {
		t.Fatal(err)
	}
	const ask = `python3 -c 'import urllib.request; print(urllib.request.urlopen("http://127.0.0.1:%d/").read())'`
	r, err := n.Exec(t.Context(), remote.Cmd{Line: fmt.Sprintf(ask, opened.RemotePort)})
	if err != nil || !strings.Contains(string(r.Stdout), "home") {
		t.Errorf("the head gets %q %q, %v", r.Stdout, r.Stderr, err)
	}
}

func TestTrainingRunsOnTwoHostsAndLeavesThemAsTheyWere(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	write(t, filepath.Join(data, "somebody's"), "")
	programs := filepath.Join(dir, "programs")
	executable(t, filepath.Join(programs, "nvidia-smi"), "#!/bin/sh\n[ \"$1\" = -L ] || exit 1\nfor i in 0 1 2 3; do echo \"GPU $i: A10G (UUID: GPU-$i)\"; done\n")
	a, b, bastion := sshdtest.Start(t, sshdtest.PathFirst(programs)), sshdtest.Start(t, sshdtest.Config("MaxSessions 2")), sshdtest.Start(t)
	sshFiles(t, dir, map[string]*sshdtest.Server{"gpu1": a, "gpu2": b, "bastion": bastion})
	t.Setenv("DLWB_SSH_CONFIG", filepath.Join(dir, "config"))
	write(t, filepath.Join(dir, "code", "train.py"), train)
	write(t, filepath.Join(dir, "code", "dlwb.yaml"), fmt.Sprintf(profile, data))
	w := openDesk(t, dir)
	before := files(t, a.Home) + files(t, b.Home) + files(t, data)
	trusttest.Trust(w.Dir(), filepath.Join(dir, "code"))
	plan, err := w.Plans().Plan(t.Context(), filepath.Join(dir, "code", "dlwb.yaml"))
	if err != nil || !plan.OK() || plan.WorldSize != 3 {
		t.Fatalf("%v %+v", err, plan.Findings)
	}
	out, err := w.Do(t.Context(), plan, workbench.Goal{})
	if err != nil || out.Ended == nil || out.Ended.Verdict != event.Succeeded {
		t.Fatalf("%v %+v", err, out)
	}
	ownSSH(t, w, a, b)
	reverse(t, w)
	there := fmt.Sprintf("in %s/dlwb-demo/code on GPUs 1,3\n", data)
	for rank, where := range []string{there, there, fmt.Sprintf("in %s/dlwb/demo/code on GPUs all\n", b.Home)} {
		log := make([]byte, 1000)
		n, _ := w.ReadLog(out.Run, rank, 0, log)
		if want := fmt.Sprintf("rank %d of 3 %s", rank, where); !strings.Contains(string(log[:n]), want) {
			t.Errorf("the log of rank %d is %q", rank, log[:n])
		}
	}
	if found, _ := filepath.Glob(filepath.Join(dir, "state", "runs", "*", "results", "outputs", "rank0")); len(found) != 1 {
		t.Errorf("the result did not come home:\n%s", files(t, filepath.Join(dir, "state")))
	}
	receipt, err := w.TearDown(t.Context(), "demo", false)
	if err != nil || !receipt.Proven() || len(receipt.Resources) != 2 {
		t.Errorf("%v %+v", err, receipt)
	}
	if after := files(t, a.Home) + files(t, b.Home) + files(t, data); after != before {
		t.Errorf("the hosts are not as they were; left:\n%s", after)
	}
}
