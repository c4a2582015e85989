package ec2story

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/fakeaws"
	"github.com/dlwb/dlwb/internal/sample"
	"github.com/dlwb/dlwb/internal/sshdtest"
)

// privateAccount is a company's account: no default VPC, and private subnets alone, with
// an Instance Connect endpoint.
func privateAccount() fakeaws.Options {
	return fakeaws.Options{Regions: []fakeaws.Region{{Name: "us-east-1", NoDefaultVPC: true, VPCs: []fakeaws.VPC{{Name: "ml-lab", Endpoint: true,
		Subnets: []fakeaws.Subnet{{Name: "in-a", Zone: "a", Private: true}, {Name: "in-b", Zone: "b", Private: true}}}}}}}
}

// inLab is a profile for that account.
func (b *bench) inLab(count int, machines, more string) {
	b.t.Helper()
	b.write("dlwb.yaml", fmt.Sprintf("name: story\nprovider: ec2\nmachines:\n  region: us-east-1\n  instance: g5.xlarge\n  count: %d\n  ssh_port: %d\n  vpc: ml-lab\n%s%s",
		count, b.rig.SSHPort(), machines, more))
}

const helloRun = "run: {engine: plain, command: train.py}\nresults: {paths: [out/]}\n"

const hello = "import os\nos.makedirs('out', exist_ok=True)\nopen('out/rank', 'w').write(os.environ['RANK'])\nprint('rank', os.environ['RANK'], open(os.path.expanduser('~/mine')).read() if os.path.exists(os.path.expanduser('~/mine')) else '')\n"

// Two machines that have no public address train, are looked at, and go; all of it
// through the endpoint, by dlwb's own ssh and by the user's.
func TestMachinesWithoutAPublicAddressTrainThroughTheEndpoint(t *testing.T) {
	sample.Leave(t)
	long(t)
	t.Parallel()
	b := newBench(t, privateAccount())
	b.inLab(2, "  tags: {cost-center: \"1234\"}\n", helloRun)
	b.write("train.py", hello)
	c := b.command("run", "--json")
	c.Env = withoutSource(c.Env)
	if r := b.play(c); r.code != 0 || r.one(t, "run_ended")["exit_code"] != 0.0 {
		t.Fatal(r)
	} else if home := r.one(t, "results"); home["dir"] == nil {
		t.Error(home)
	}
	if n := b.aws.Tunnels(); n < 2 {
		t.Errorf("%d tunnels", n)
	}
	if got := b.run("ssh", "story", "1", "--", "echo", "hello there"); got.code != 0 || !strings.Contains(got.stdout, "hello there") {
		t.Error(got)
	}
	b.ownSSH()
	c = b.command("down", "story", "--json")
	if r := b.play(c); r.code != 0 || r.one(t, "receipt")["proven"] != true {
		t.Fatal(r)
	}
	b.nothingLeft("after down")
}

// withoutSource is an environment without the address that stands for the caller's.
func withoutSource(env []string) (out []string) {
	for _, kv := range env {
		if !strings.HasPrefix(kv, "DLWB_SOURCE_ADDRESS=") {
			out = append(out, kv)
		}
	}
	return out
}

// ownSSH has the real ssh reach a node by what dlwb writes for it.
func (b *bench) ownSSH() {
	b.t.Helper()
	ssh, err := exec.LookPath("ssh")
	if err != nil {
		b.t.Fatal("openssh-client is missing: make test installs it")
	}
	made := b.run("ssh", "--config", "story")
	file := filepath.Join(b.state(), "ssh", "story.only")
	if _, err := os.Stat(file); made.code != 0 || err != nil {
		b.t.Fatal(made, err)
	}
	cmd := exec.CommandContext(b.t.Context(), ssh, "-F", file, "-o", "BatchMode=yes", "node1", "echo by my own ssh")
	cmd.Env = b.command().Env
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "by my own ssh") {
		b.t.Errorf("ssh: %v\n%s\n%s", err, out, made.stdout)
	}
}

// The same through a jump host: a real sshd, as the user's own ssh knows it.
func TestMachinesWithoutAPublicAddressTrainThroughAJumpHost(t *testing.T) {
	sample.Leave(t)
	long(t)
	t.Parallel()
	bastion := sshdtest.Start(t)
	host, port, _ := net.SplitHostPort(bastion.Addr)
	o := privateAccount()
	o.Regions[0].VPCs[0].Endpoint = false
	b := newBench(t, o)
	b.write("known", fmt.Sprintf("[%s]:%s %s\n", host, port, bastion.HostKey))
	b.write("config", fmt.Sprintf("Host bastion\n HostName %s\n Port %s\n User %s\n IdentityFile %s\n IdentitiesOnly yes\n UserKnownHostsFile %s\n",
		host, port, bastion.User, bastion.KeyFile, filepath.Join(b.dir, "known")))
	b.inLab(2, "  jump: bastion\n  user_data: |\n    #cloud-config\n    runcmd:\n    - echo told >told-by-user\n", helloRun)
	b.write("train.py", hello)
	through := func(args ...string) result {
		c := b.command(args...)
		c.Env = append(c.Env, "DLWB_SSH_CONFIG="+filepath.Join(b.dir, "config"))
		return b.play(c)
	}
	if r := through("run", "--down", "--json"); r.code != 0 || r.one(t, "run_ended")["exit_code"] != 0.0 || r.one(t, "receipt")["proven"] != true {
		t.Fatal(r)
	}
	if b.aws.Tunnels() > 0 || !strings.Contains(bastion.Log(), "Accepted publickey") {
		t.Errorf("the jump host was not passed:\n%s", bastion.Log())
	}
	b.nothingLeft("after run --down")
}
