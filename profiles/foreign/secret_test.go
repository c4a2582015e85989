package foreign

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// No secret of a file is in what is said of it, wherever it is there; what is none is
// said as before.
func TestNoSecretIsInWhatIsSaidOfAFile(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		said []string
	}{
		"docker-compose.yml": {`services:
  db:
    image: postgres
    environment:
      POSTGRES_PASSWORD: hunter2secret
      PGUSER: lab
    command: ["--token", "hunter2secret", "--password=hunter2secret"]
    healthcheck: {test: "psql 'postgres://lab:hunter2secret@db/x' && API_KEY='a hunter2secret b' DEBUG=1 true"}
  cache:
    environment: ["REDIS_PASSWORD=hunter2secret and more", "MODE=fast", "NPM_TOKEN=${NPM_TOKEN}"]
    command: redis-server --api-key hunter2secret --port 6379
    labels: [hf_hunter2secrethunter2secret]
  train:
    runtime: nvidia
    build:
      context: .
      args: {HF_TOKEN: hunter2secret, CUDA: "12"}
    command: python train.py | tee --token hunter2secret
    environment:
      DB_PASSWORD: "hunter2secret$$x"
      API_KEY: "${API_KEY:-hunter2secret}"
      OTHER_KEY: ${OTHER_KEY}
      PLAIN_TOKEN: hunter2secret
x-common:
  args: ["GH_TOKEN=hunter2secret"]
  registry.password: hunter2secret
`, []string{"services.db.environment.PGUSER: lab", "services.cache.environment: MODE=fast", "NPM_TOKEN=${NPM_TOKEN}", "--port 6379", "services.train.build.args.CUDA: 12", "OTHER_KEY: ${OTHER_KEY}", "PLAIN_TOKEN (its value looks like a secret: write PLAIN_TOKEN: ",
			"services.db.environment.POSTGRES_PASSWORD: •••", "services.train.environment.DB_PASSWORD: •••", "services.train.environment.API_KEY: •••", "DEBUG=1 true", "GH_TOKEN=•••"}},
		".devcontainer/devcontainer.json": {`{"image": "pytorch", "remoteEnv": {"WANDB_API_KEY": "hunter2secret", "PATH": "/opt", "TOKEN": "${localEnv:TOKEN}"}, "build": {"dockerfile": "D", "args": {"PASSWORD": "hunter2secret"}},
 "runArgs": ["-e", "API_TOKEN=hunter2secret", "--cap-add=SYS_PTRACE"], "secrets": {"DB_PASSWORD": {"description": "of the lab"}}}`,
			[]string{"remoteEnv.PATH: /opt", "remoteEnv.TOKEN: ${localEnv:TOKEN}", "remoteEnv.WANDB_API_KEY: •••", "runArgs: --cap-add=SYS_PTRACE"}},
		"task.yaml": {"resources: {cpus: 4}\nenvs: {A_TOKEN: 'hunter2secret$'}\nsecrets: {HF_TOKEN: hunter2secret}\nrun: |\n  export WANDB_API_KEY=hunter2secret && python a.py\n",
			[]string{"envs.A_TOKEN: •••", "secrets.HF_TOKEN: •••", "resources.cpus: 4"}},
		"run.sh": {"ssm run -p p -t t -e w.py --it ml.p3.2xlarge --env WANDB_API_KEY=hunter2secret --token hunter2secret --x $HOME/hunter\n",
			[]string{"-t t", "WANDB_API_KEY=•••", "--token •••"}},
	} {
		made, err := Import(name, []byte(c.text), "train.py")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var all []string
		for _, l := range made.Left {
			all = append(all, fmt.Sprint(l.Line, " ", l.What, " (", l.Why, ")"))
		}
		if text := strings.Join(all, "\n"); strings.Contains(text, "hunter2secret") {
			t.Errorf("%s: a secret is told:\n%s", name, text)
		}
		for _, want := range c.said {
			if !slices.ContainsFunc(all, func(l string) bool { return strings.Contains(l, want) }) {
				t.Errorf("%s: %q is not said in\n%s", name, want, strings.Join(all, "\n"))
			}
		}
	}
}

// A secret of a file is in no profile either, whichever part of it is carried over.
func TestNoSecretIsCarriedOver(t *testing.T) {
	const compose = "services:\n  t:\n    image: x\n    command: "
	for _, c := range []struct {
		name, text string
		has, said  []string
	}{
		{"docker-compose.yml", compose + "env WANDB_API_KEY=hunter2secret LR=0.1 python train.py --epochs 3\n", []string{"command: python train.py --epochs 3", "LR: 0.1", `WANDB_API_KEY: ${env:WANDB_API_KEY}`}, []string{"4 WANDB_API_KEY=•••"}},
		{"docker-compose.yml", compose + "WANDB_API_KEY=hunter2secret torchrun --nproc_per_node=2 train.py\n", []string{"command: train.py", `${env:WANDB_API_KEY}`, "engine: torchrun"}, nil},
		{"docker-compose.yml", compose + "[python, train.py, --token, hf_hunter2secrethunter2secret, --epochs, '3']\n", []string{"command: python train.py --epochs 3", `HF_TOKEN: ${env:HF_TOKEN}`}, []string{"4 --token •••"}},
		{"docker-compose.yml", compose + "python train.py --hub-token=hunter2secret wandb.api_key=hunter2secret\n", []string{"command: python train.py\n", "HUB_TOKEN: ${env:HUB_TOKEN}", "WANDB_API_KEY: ${env:WANDB_API_KEY}"}, nil},
		{"docker-compose.yml", compose + "docker run -e AWS_SECRET_ACCESS_KEY=hunter2secret -e A=b img python train.py\n", []string{"command: docker run -e A=b img python train.py", "AWS_SECRET_ACCESS_KEY: ${env:AWS_SECRET_ACCESS_KEY}"}, nil},
		{"docker-compose.yml", compose + "python train.py hf_hunter2secrethunter2secret --from https://lab:hunter2secret@example.org/x\n", []string{"command: python train.py"}, []string{"https://lab:•••@example.org/x"}},
		{"docker-compose.yml", compose + "python train.py --pad-token '[PAD]x' --max_tokens 4096 --key 3\n", []string{"[PAD]x", "--max_tokens 4096 --key 3"}, nil},
		{"docker-compose.yml", "services:\n  t:\n    image: lab/x\n    build: https://lab:hunter2secret@example.org/x.git\n    command: python a.py\n    volumes: ['/data:/data', '/x/password=hunter2secret:/x']\n", []string{"command: python a.py"}, []string{"4 build: https://lab:•••@example.org/x.git", "6 volumes: /data:/data /x/password=•••"}},
		{"docker-compose.yml", "services:\n  t:\n    image: x\n    command: python a.py\n    volumes: ['/data:/data', '/x/password=hunter2secret:/x']\n", []string{"mounts: [/data:/data]"}, nil},
		{"task.yaml", "resources: {accelerators: L4}\nsetup: |\n  pip install x\n  export HF_TOKEN=hunter2secret\n  pip install --index-url https://lab:hunter2secret@example.org/simple y\n  wandb login hunter2secrethunter2secrethunter2secret0\nrun: |\n  export WANDB_API_KEY=hunter2secret MODE=fast\n  python train.py --lr 0.1\n",
			[]string{"pip install x", "HF_TOKEN: ${env:HF_TOKEN}", "WANDB_API_KEY: ${env:WANDB_API_KEY}", "MODE: fast", "command: python train.py --lr 0.1"}, []string{"wandb login •••", "https://lab:•••@example.org/simple"}},
		{"cluster.yaml", "cluster_name: c\nprovider: {type: aws, region: us-east-1}\nsetup_commands:\n  - pip install x\n  - wandb login hunter2secrethunter2secrethunter2secret0\n", []string{"pip install x"}, []string{"5 environment.before: wandb login •••"}},
		{"run.sh", "ssm run -p p -t t -e w.py --it ml.p3.2xlarge -i https://lab:hunter2secret@example.org/x -- --api-key hunter2secret --epochs 3\n", []string{"command: w.py --epochs 3", "API_KEY: ${env:API_KEY}"}, []string{"--api-key •••"}},
		{"run.sh", "ssm shell -p p -t t --cmd_line 'API_KEY=hunter2secret ls -l' --it ml.p3.2xlarge\n", []string{"command: ls -l", "API_KEY: ${env:API_KEY}"}, nil},
		{".devcontainer/devcontainer.json", `{"image": "x", "postCreateCommand": "GH_TOKEN=hunter2secret gh auth login"}`, []string{"docker: x"}, []string{"GH_TOKEN=•••"}},
	} {
		made, err := Import(c.name, []byte(c.text), "train.py")
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		said := ""
		for _, l := range made.Left {
			said += fmt.Sprintln(l.Line, l.What, l.Why)
		}
		profile := strings.NewReplacer(`"`, "", `'`, "").Replace(string(made.Profile))
		if strings.Contains(profile+said, "hunter2secret") {
			t.Errorf("%s: a secret is there:\n%s\n%s", c.text, profile, said)
		}
		for _, want := range c.has {
			if !strings.Contains(profile, want) {
				t.Errorf("%s: no %q in\n%s", c.text, want, profile)
			}
		}
		for _, want := range c.said {
			if !strings.Contains(said, want) {
				t.Errorf("%s: %q is not said in\n%s", c.text, want, said)
			}
		}
	}
}
