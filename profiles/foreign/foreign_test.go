package foreign

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/profiles"
)

// cases are small files in the form of real ones: the article's config.yaml, the
// examples of Ray's and SkyPilot's repositories, the README of simple_sagemaker, the
// GPU pages of Compose and of dev containers. They are written anew. says are keys
// of the profile, left what is named by its line.
var cases = []struct {
	name, text string
	want       func(p *profiles.Profile) string
	is         string
	left       []string
}{
	{"config.yaml", "aws_ssh_key: me\nami_id: ami-0163b0951ed4a6b22 # Base AMI\ninstance_count: 3\ninstance_type: g4dn.xlarge\nregion: eu-central-1\nzone: eu-central-1b\nvpc_id: vpc-1\ninstance_tag: dl-experiment\npython:\n  version: 3.6\n  virtualenv: /home/ubuntu/.venv\n",
		func(p *profiles.Profile) string {
			return fmt.Sprint(p.Name, " ", p.Provider, " ", p.Machines.Count, " ", p.Machines.Instance, " ", p.Machines.Regions, " ", p.Machines.Image, " ", p.Environment.Python, " ", p.Run.Command)
		}, "dl-experiment ec2 3 g4dn.xlarge [eu-central-1] ami-0163b0951ed4a6b22 3.6 train.py",
		[]string{"0 the training command", "1 aws_ssh_key: me", "6 zone: eu-central-1b", "7 vpc_id: vpc-1", "11 python.virtualenv"}},
	{"cluster.yaml", "cluster_name: gpu_docker\nmax_workers: 2\ndocker:\n    image: rayproject/ray-ml:latest-gpu\n    container_name: ray_c\nidle_timeout_minutes: 5\nprovider:\n    type: aws\n    region: us-west-2\nauth: {ssh_user: ubuntu}\navailable_node_types:\n    head:\n        node_config: {InstanceType: m5.large}\n    worker:\n        min_workers: 2\n        node_config:\n            InstanceType: p3.2xlarge\n            BlockDeviceMappings:\n                - DeviceName: /dev/sda1\n                  Ebs: {VolumeSize: 100}\n            InstanceMarketOptions: {MarketType: spot}\nhead_node_type: head\nfile_mounts: {}\nsetup_commands:\n    - pip install -U x\nworker_start_ray_commands:\n    - ray stop\n",
		func(p *profiles.Profile) string {
			return fmt.Sprint(p.Name, " ", p.Head(), " ", p.Machines.Count, " ", p.Machines.Instance, " ", p.Machines.Spot, " ", p.Machines.Disk>>30, " ", p.Environment.Kind, " ", p.Environment.File, " ", p.Environment.Before, " ", p.Limits.Idle)
		}, "gpu-docker m5.large 2 p3.2xlarge true 100 docker rayproject/ray-ml:latest-gpu [pip install -U x] 5m0s",
		[]string{"0 the training command", "2 max_workers: 2", "5 docker.container_name", "10 auth.ssh_user: ubuntu", "27 worker_start_ray_commands: ray stop"}},
	{"task.yaml", "name: minGPT-ddp\nresources:\n    cpus: 4+\n    accelerators: {L4: 2}\n    use_spot: true\nnum_nodes: 2\nworkdir: src\nfile_mounts:\n    /data: s3://b\nenvs: {A: \"1\", TOKEN: $TOKEN}\nsetup: |\n    # packages\n    pip install \\\n      torch\nrun: |\n    MASTER_ADDR=$(echo \"$IPS\" | head -n1)\n    torchrun \\\n    --nnodes=$N \\\n    --node_rank=${R} \\\n    main.py --lr 1 || exit 1\n",
		func(p *profiles.Profile) string {
			return fmt.Sprint(p.Name, " ", p.Machines.Count, " ", p.Machines.Need.GPU, p.Machines.Need.GPUs, " ", p.Machines.Spot, " ", p.Code.Dir, " ", p.Environment.After, " ", p.Run.Engine, " ", p.Run.Command, " ", len(p.Run.Env))
		}, "mingpt-ddp 2 [L4] 2 true src [pip install torch] torchrun main.py --lr 1 1",
		[]string{"3 resources.cpus: 4+", "9 file_mounts./data: s3://b", "10 envs.TOKEN: $TOKEN", "15 --nnodes=$N --node_rank=${R}"}},
	{"run.sh", "#!/bin/sh\n# as in its README\nssm run -p proj -t task1 -e worker.py --it ml.p3.2xlarge --ic 2 \\\n  -i data -o out -- --epochs 5\n",
		func(p *profiles.Profile) string {
			return fmt.Sprint(p.Name, " ", p.Machines.Count, " ", p.Machines.Instance, " ", p.Machines.Spot, " ", p.Run.Command, " ", p.Results.To)
		}, "proj 2 p3.2xlarge true worker.py --epochs 5 results/{run}",
		[]string{"3 -t task1", "3 -o out"}},
	{"docker-compose.yml", "services:\n  db: {image: redis}\n  train:\n    build: {context: ., dockerfile: Dockerfile.gpu}\n    command: python train.py --lr 1\n    shm_size: 8gb\n    volumes: ['.:/app', '/data:/data:ro', 'cache:/c']\n    environment: ['A=1', 'KEY=${KEY}']\n    ports: ['127.0.0.1:8888:8888']\n    restart: always\n    deploy: {resources: {reservations: {devices: [{driver: nvidia, count: 1, capabilities: [gpu]}]}}}\n",
		func(p *profiles.Profile) string {
			return fmt.Sprint(p.Name, " ", p.Environment.Kind, " ", p.Environment.File, " ", p.Environment.Mounts, " ", p.Run.Command, " ", p.Run.Env[0].Name, " ", p.Forward)
		}, "train docker Dockerfile.gpu [/data:/data:ro] python train.py --lr 1 A [8888]",
		[]string{"2 services.db.image: redis", "7 services.train.volumes: cache:/c", "8 services.train.environment: KEY=${KEY}", "10 services.train.restart: always"}},
	{".devcontainer/devcontainer.json", "{\n\t// GPU\n\t\"name\": \"CUDA box\",\n\t\"build\": {\"dockerfile\": \"Dockerfile\"},\n\t\"runArgs\": [\"--gpus\", \"all\"],\n\t\"containerEnv\": {\"A\": \"1\"},\n\t\"forwardPorts\": [6006],\n\t\"postCreateCommand\": \"pip install -e .\",\n\t\"remoteUser\": \"vscode\"\n}\n",
		func(p *profiles.Profile) string {
			return fmt.Sprint(p.Name, " ", p.Environment.File, " ", p.Environment.After, " ", p.Forward, " ", p.Run.Env[0].Value)
		}, "cuda-box .devcontainer/Dockerfile [pip install -e .] [6006] 1",
		[]string{"0 the training command", "9 remoteUser: vscode"}},
}

func TestWhatOthersWroteBecomesAProfileAndTheRestIsNamedByItsLine(t *testing.T) {
	for _, c := range cases {
		made, err := Import(c.name, []byte(c.text), "train.py")
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		p, err := profiles.Parse("dlwb.yaml", made.Profile)
		if err != nil {
			t.Errorf("%s: what was written can't be read: %v\n%s", c.name, err, made.Profile)
			continue
		}
		if got := c.want(p); got != c.is {
			t.Errorf("%s: got\n%s, want\n%s", c.name, got, c.is)
		}
		for _, want := range c.left {
			if !slices.ContainsFunc(made.Left, func(l Left) bool { return strings.HasPrefix(fmt.Sprint(l.Line, " ", l.What), want) && l.Why != "" }) {
				t.Errorf("%s: %q is not named in %v", c.name, want, made.Left)
			}
		}
		if len(made.Left) != len(c.left) {
			t.Errorf("%s: named are %d lines, not %d: %v", c.name, len(made.Left), len(c.left), made.Left)
		}
	}
}

func TestARunScriptThatNeedsAShellIsNamedAndNotGuessed(t *testing.T) {
	made, err := Import("t.yaml", []byte("resources: {accelerators: V100}\nrun: |\n  if [ $R = 0 ]; then\n    python a.py\n  fi\nsetup: |\n  for x in a b; do pip install $x; done\n"), "train.py")
	if err != nil || !strings.Contains(string(made.Profile), "command: train.py") || len(made.Left) != 3 {
		t.Errorf("%v\n%s\n%v", err, made.Profile, made.Left)
	}
}

func TestWhatIsNoneOfTheseIsRefused(t *testing.T) {
	for _, text := range []string{"", "a: b\n", "[1]", "a: [", "run: {command: x}\n"} {
		if _, err := Import("x.yaml", []byte(text), "t.py"); err == nil || text == "a: b\n" && !errors.Is(err, ErrUnknown) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzImport(f *testing.F) {
	for _, c := range cases {
		f.Add(c.name, []byte(c.text))
	}
	f.Fuzz(func(t *testing.T, name string, text []byte) {
		made, err := Import(name, text, "train.py")
		if err != nil {
			return
		}
		if _, err := profiles.Parse("dlwb.yaml", made.Profile); err != nil {
			t.Errorf("%v\n%s", err, made.Profile)
		}
	})
}
