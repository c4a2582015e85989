package foreign

import (
	"strings"
	"testing"
)

// Forms that public files have, and what was once refused, lost or wrong of them.
func TestFormsOfPublicFiles(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string
		has, not   []string // in the profile, and what is said
	}{
		"GPUs of which any will do": {"t.yaml", "resources:\n  accelerators: {L4, T4, A10G}\n  disk_size: 256GB\nrun: python a.py\n",
			[]string{"gpu: [L4, T4, A10G]", "disk: 256GB", "command: python a.py"}, []string{"provider: local"}},
		"GPUs in a list": {"t.yaml", "resources:\n  accelerators: ['A100:8', 'H100:8']\nrun: python a.py\n", []string{"gpu: [A100, H100]", "gpus: 8"}, nil},
		"GPUs that are not as many": {"t.yaml", "resources:\n  accelerators: {A100: 4, T4: 8}\nrun: python a.py\n",
			[]string{"gpu: [A100]", "gpus: 4", "2 resources.accelerators.T4: 8"}, nil},
		"alternatives": {"t.yaml", "resources:\n  any_of:\n  - {accelerators: T4, cloud: gcp}\n  - {accelerators: V100}\nrun: python a.py\n",
			[]string{"gpu: [T4, V100]", "3 resources.any_of.cloud: gcp"}, nil},
		"another cloud": {"t.yaml", "resources:\n  cloud: gcp\n  region: us-central1\n  instance_type: n1-highmem-8\n  accelerators: V100\nrun: python a.py\n",
			[]string{"gpu: [V100]", "3 resources.region", "4 resources.instance_type"}, []string{"region: [us", "instance: n1"}},
		"infra": {"t.yaml", "resources:\n  infra: aws/us-east-1/us-east-1a\n  accelerators: V100\nrun: python a.py\n", []string{"region: [us-east-1]"}, nil},
		"image of machines": {"t.yaml", "resources: {cloud: aws, image_id: ami-062ddd90fb6f8267a, accelerators: L4, autostop: {idle_minutes: 10, down: true}, ports: 8000}\nrun: python a.py\n",
			[]string{"image: ami-062ddd90fb6f8267a", "idle: 10m", "forward: [8000]"}, nil},
		"several tasks": {"t.yaml", "name: all\n---\nname: one\nresources: {accelerators: T4}\nrun: python a.py\n---\nname: two\nresources: {accelerators: T4}\nrun: python b.py\n",
			[]string{"name: one", "command: python a.py", "7 a further part of the file"}, nil},
		"machines alone":   {"t.yaml", "resources:\n  accelerators: T4\n", []string{"gpu: [T4]"}, nil},
		"a home directory": {"t.yaml", "workdir: ~/x\nresources: {accelerators: T4}\nrun: python a.py\n", []string{"1 workdir: ~/x", "command: python a.py"}, []string{"  dir:"}},
		"a line that is twice": {"t.yaml", "resources: {accelerators: T4}\nsetup: |\n  cd a\n  pip install -e .\n  cd ../b\n  pip install -e .\nrun: python a.py\n",
			[]string{"after: [cd a, pip install -e ., cd ../b, pip install -e .]"}, nil},
		"a text over lines": {"t.yaml", "resources: {accelerators: T4}\nsetup: |\n  python -c \"\n  import a\n  \"\nrun: python a.py\n",
			[]string{"2 setup: python -c \": it is a script", "command: python a.py"}, []string{"after"}},
		"a name that is none": {"compose.yml", "services:\n  db:\n    image: x\n    environment:\n      discovery.type: single-node\n      A: b\n",
			[]string{"docker: x", "discovery.type"}, nil},
		"an entrypoint":     {"compose.yml", "services:\n  a:\n    image: x\n    entrypoint: [python]\n    command: [train.py, --lr, '1']\n", []string{"train.py --lr 1"}, []string{"entrypoint"}},
		"a port":            {"compose.yml", "services:\n  a: {image: x, command: a.py, ports: ['127.0.0.1:8080:80/tcp', '9000-9001:9000-9001', '6006:6006']}\n", []string{"6006", "8080:80/tcp", "9000-9001"}, nil},
		"idle for no time":  {"c.yaml", "cluster_name: a\nprovider: {type: aws, region: us-west-2}\nidle_timeout_minutes: 0\navailable_node_types: {h: {node_config: {InstanceType: m5.large}}}\nhead_node_type: h\n", []string{"3 idle_timeout_minutes: 0", "instance: m5.large"}, []string{"idle: 0"}},
		"Ray before 2.0":    {"c.yaml", "cluster_name: a\nmin_workers: 3\nmax_workers: 3\nprovider: {type: aws, region: us-west-2}\nhead_node: {InstanceType: m5.large}\nworker_nodes: {InstanceType: p3.2xlarge, InstanceMarketOptions: {MarketType: spot}}\n", []string{"count: 3", "instance: p3.2xlarge", "head_instance: m5.large", "engine: ray", "spot: true"}, []string{"InstanceType: m5.large"}},
		"a name to fill in": {"c.yaml", "cluster_name: a\nprovider: {type: local, head_ip: YOUR HEAD, worker_ips: [10.0.0.2]}\nauth: {ssh_user: u}\n", []string{"machines.hosts", "name: a"}, nil},
		"a command over lines": {"c.yaml", "cluster_name: a\nprovider: {type: local, head_ip: gpu1, worker_ips: [gpu2]}\nsetup_commands:\n- |\n  set -e\n  pip install x\n- |\n  if true; then\n    pip install y\n  fi\n",
			[]string{"before: [set -e, pip install x]", "7 setup_commands: if true"}, nil},
	} {
		_, err := Import(c.file, []byte(c.text), "script.py")
		said := described(t, c.file, []byte(c.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, want := range c.has {
			if !strings.Contains(said, want) {
				t.Errorf("%s: no %q in\n%s", name, want, said)
			}
		}
		for _, none := range c.not {
			if strings.Contains(said, none) {
				t.Errorf("%s: %q in\n%s", name, none, said)
			}
		}
	}
}

func TestCommentsOfEditorsAreNoText(t *testing.T) {
	text := "// a\n{\n\t\"name\": \"x\", // the name\n\n\t/* more\n\t   of it */\n\t\"image\": \"https://host//x:1\",\n\t\"postCreateCommand\": \"echo \\\"// this\\\" /* and */\",\n\t\"odd\": 1, // last\n}\n"
	made, err := Import(".devcontainer/devcontainer.json", []byte(text), "train.py")
	if err != nil {
		t.Fatal(err)
	}
	profile := string(made.Profile)
	if !strings.Contains(profile, "https://host//x:1") || !strings.Contains(profile, "/* and */") || !strings.Contains(profile, "// this") {
		t.Errorf("got\n%s", profile)
	}
	for _, l := range made.Left {
		if strings.HasPrefix(l.What, "odd") && l.Line != 9 {
			t.Errorf("%+v, in line 9", l)
		}
	}
	_, err = Import(".devcontainer/devcontainer.json", []byte(`{"dockerComposeFile": ["../a.yml", "b.yml"], "service": "x"}`), "train.py")
	if err == nil || !strings.Contains(err.Error(), "import that, ../a.yml or b.yml") {
		t.Error(err)
	}
	for _, bad := range []string{"/*", "{\"a\": \"", "//", "{/*}", "\"\\"} {
		_, _ = Import("devcontainer.json", []byte(bad), "train.py") // no panic
	}
}
