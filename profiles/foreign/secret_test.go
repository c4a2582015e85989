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
