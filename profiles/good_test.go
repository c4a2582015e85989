package profiles

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	hosts "github.com/dlwb/dlwb/cloud/hosts/options"
	local "github.com/dlwb/dlwb/cloud/local/options"
	"github.com/dlwb/dlwb/cloud/providers"
	sagemaker "github.com/dlwb/dlwb/cloud/sagemaker/options"
	"github.com/dlwb/dlwb/remote/engine"
)

func mustParse(t testing.TB, name string, text []byte) *Profile {
	t.Helper()
	p, err := parse(name, text, shell)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return p
}

// noSweep are the defaults of a sweep that is not there.
var noSweep = Sweep{Method: "grid", Mode: "min", Nodes: 1, Stop: "none", Warmup: 5}

func TestTheLeastProfileHasTheDefaults(t *testing.T) {
	p := mustParse(t, filepath.Join("My Project_1", "dlwb.yaml"), []byte("run: {command: train.py}"))
	want := &Profile{
		Name: "my-project-1", Provider: "local", Machines: Machines{Count: 1}, Environment: Environment{Kind: "system"},
		Code: Code{Dir: "."}, Run: Run{Engine: "auto", Command: "train.py", Grace: 10 * time.Second},
		Limits: Limits{Lifetime: 24 * time.Hour, Idle: time.Hour, Stall: 30 * time.Minute, Lost: 2 * time.Minute, Log: 4 << 30, Replacements: 3},
		Sweep:  noSweep,
	}
	if !Equal(p, want) {
		t.Errorf("got %+v\nwant %+v", p, want)
	}
}

func TestEveryKeyOfAFullProfileIsRead(t *testing.T) {
	p := mustParse(t, "full-local.yaml", files(t, "good")["full-local.yaml"])
	want := &Profile{
		Name: "charlm", Provider: "local", Machines: Machines{Count: 2}, own: map[string]any{"local": &local.Machines{SimulateGPUs: 2}},
		Environment: Environment{Kind: "venv", File: "requirements.txt", Python: "/usr/bin/python3", Optional: true},
		Code:        Code{Dir: "..", Exclude: []string{"data/", "*.ckpt", "!keep.ckpt"}},
		Run: Run{Engine: "plain", Command: "train.py --epochs 10 --note 'lr: 0.1 # not a comment'", ProcsPerNode: 2, MasterPort: 29500,
			Grace: 1500 * time.Millisecond, Env: []Var{
				{Name: "OMP_NUM_THREADS", Value: "1"}, {Name: "TOKENIZERS_PARALLELISM", Value: "false"},
				{Name: "MAX_TOKENS", Value: "4096"}, {Name: "EMPTY"},
				{Name: "WANDB_API_KEY", Value: "s3cr3t value", Secret: true, Ref: "${env:DLWB_TEST_SECRET}"},
				{Name: "URL", Value: "https://user:s3cr3t value@host", Secret: true, Ref: "https://user:${env:DLWB_TEST_SECRET}@host"}}},
		Metrics: []Metric{{"val/acc", `top-1 (\d+\.\d+)`}, {"tok/s", `it's (\d+) \[tokens\]`}},
		Results: Results{Paths: []string{"outputs", "runs/last"}, Checkpoints: "outputs/ckpt"},
		Limits:  Limits{Lifetime: 36 * time.Hour, Idle: 30 * time.Minute, Stall: 90 * time.Second, Lost: 2 * time.Minute, Log: 4 << 30, Replacements: 3},
		Forward: []string{"jupyter", "tensorboard", "8265", "node1:tensorboard", "node1:8265/http"}, Sweep: noSweep,
	}
	if !Equal(p, want) {
		t.Errorf("got %+v\nwant %+v", p, want)
	}
}

func TestANeedIsReadIntoItsParts(t *testing.T) {
	m := mustParse(t, "x.yaml", goodTexts(t)["Two spot instances on EC2"]).Machines
	want := Machines{Regions: []string{"us-east-1", "us-west-2"}, Count: 2, Spot: true, Image: "pytorch", Disk: 200e9,
		Need: Need{GPU: []string{"A10G", "L4"}, GPUs: 1, Memory: 24e9, MaxPrice: 1.5}}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("got %+v\nwant %+v", m, want)
	}
}

func TestHostsAreCountedWhenNoCountIsGiven(t *testing.T) {
	for name, want := range map[string]int{"hosts.yaml": 4, "hosts-some.yaml": 1} {
		if p := mustParse(t, name, files(t, "good")[name]); p.Machines.Count != want {
			t.Errorf("%s: %d nodes, want %d", name, p.Machines.Count, want)
		}
	}
}

// goodTexts are all texts that are said to be profiles.
func goodTexts(t testing.TB) map[string][]byte {
	all := files(t, "good")
	for _, e := range Examples {
		all[e.Title] = []byte(strings.ReplaceAll(e.Text, "env:WANDB_API_KEY", "env:DLWB_TEST_SECRET"))
	}
	for _, f := range Fields {
		all["the example of "+f.Key] = []byte(withExample(f))
	}
	return all
}

// withExample is a profile that has the example of one field.
func withExample(f *Field) string {
	provider := "local"
	if f.Providers != nil {
		provider = f.Providers[0]
	}
	tree := map[string]any{"provider": provider, "run": map[string]any{"command": "train.py"}, "machines": map[string]any{}}
	switch {
	case provider == "hosts" && f.Key != "machines.hosts":
		tree["machines"] = map[string]any{"hosts": []string{"gpu1"}}
	case provider == "ec2" && f.Key != "machines.instance" && !strings.HasPrefix(f.Key, "machines.instance."):
		tree["machines"] = map[string]any{"instance": "g5.xlarge"}
	case provider == "sagemaker": // with all that some of its options need
		tree["machines"] = map[string]any{"instance": "ml.g5.xlarge", "execution_role": "Training", "estimator": "pytorch", "subnet": "subnet-1", "security_groups": []string{"sg-1"}}
	case provider == "ecs":
		tree["machines"] = map[string]any{"instance": "g5.xlarge", "image": "rayproject/ray:2.40.0-gpu"}
	case strings.HasPrefix(f.Key, "machines.instance."):
		tree["machines"] = map[string]any{"instance": map[string]any{"gpus": 1}}
	case strings.HasPrefix(f.Key, "sweep."):
		tree["machines"] = map[string]any{"count": 4}
		tree["sweep"] = map[string]any{"parameters": map[string]any{"lr": []any{0.1, 0.2}}, "trials": 2, "metric": "loss"}
		if f.Key == "sweep.list" {
			tree["sweep"] = map[string]any{"method": "list"}
		}
	}
	if f.Key == "environment.mounts" {
		tree["environment"] = map[string]any{"docker": "an/image:1"}
	}
	var value any
	example := strings.ReplaceAll(f.Example, "env:WANDB_API_KEY", "env:DLWB_TEST_SECRET")
	if err := yaml.Unmarshal([]byte(example), &value); err != nil {
		panic(err)
	}
	at := tree
	words := strings.Split(f.Key, ".")
	for _, w := range words[:len(words)-1] {
		if at[w] == nil {
			at[w] = map[string]any{}
		}
		at = at[w].(map[string]any)
	}
	at[last(f.Key)] = value
	if f.Key == "provider" {
		tree["machines"] = map[string]any{"instance": "g5.xlarge"}
	}
	text, err := json.Marshal(tree)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func TestWhatIsWrittenReadsBackAsTheSame(t *testing.T) {
	for name, text := range goodTexts(t) {
		t.Run(name, func(t *testing.T) {
			p := mustParse(t, name, text)
			out := Write(p)
			if strings.Contains(string(out), "s3cr3t") {
				t.Fatalf("a secret was written:\n%s", out)
			}
			if again := mustParse(t, name, out); !Equal(p, again) {
				t.Errorf("written as\n%s\ngot %+v\nwant %+v", out, again, p)
			}
		})
	}
}

func TestAnyProfileReadsBackAsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProfile(t)
		out := Write(p)
		again, err := parse("x.yaml", out, shell)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if !Equal(p, again) {
			t.Fatalf("written as\n%s\ngot %+v\nwant %+v", out, again, p)
		}
	})
}

// line draws a text of one line that people could write.
func line() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		s := rapid.StringN(1, 40, -1).Draw(t, "text")
		s = strings.Map(func(r rune) rune {
			if why, _ := foreign(r, string(r)); why != "" || !printable(string(r)) {
				return 'x'
			}
			return r
		}, s)
		return "a" + strings.NewReplacer("${", "$", "'", "", `"`, "", `\`, "").Replace(s) + "z"
	})
}

// isLiteral: a value with ${ in it is a reference, and no value of its own.
func isLiteral(value string) bool { return !strings.Contains(value, "${") }

func drawProfile(t *rapid.T) *Profile {
	p := defaults()
	p.Name = rapid.StringMatching(`[a-z0-9][a-z0-9-]{0,39}`).Draw(t, "name")
	p.Provider = rapid.SampledFrom(Providers).Draw(t, "provider")
	p.Run.Command = engine.Join([]string{line().Draw(t, "command"), "--x"})
	p.Run.Engine = rapid.SampledFrom(Engines).Draw(t, "engine")
	p.Run.ProcsPerNode = rapid.IntRange(0, 256).Draw(t, "procs")
	p.Run.Grace = time.Duration(rapid.IntRange(0, 3600_000).Draw(t, "grace")) * time.Millisecond
	for i := range rapid.IntRange(0, 3).Draw(t, "variables") {
		v := Var{Name: fmt.Sprintf("V%d", i), Value: line().Filter(isLiteral).Draw(t, "value")}
		if i == 1 {
			v = Var{Name: "SECRET", Value: "a: s3cr3t value", Ref: "a: ${env:DLWB_TEST_SECRET}", Secret: true}
		}
		p.Run.Env = append(p.Run.Env, v)
	}
	if rapid.Bool().Draw(t, "metric") {
		p.Metrics = []Metric{{"val/x y", rapid.SampledFrom([]string{`(\d+)`, `'a': "(.)"`, `# (x)`, `é: (a|b)`}).Draw(t, "regex")}}
	}
	p.Code.Exclude = rapid.SliceOfNDistinct(line(), 0, 3, rapid.ID).Draw(t, "exclude")
	if len(p.Code.Exclude) == 0 {
		p.Code.Exclude = nil
	}
	p.Limits.Idle = time.Duration(rapid.IntRange(60, 3600).Draw(t, "idle")) * time.Second
	p.Limits.Log = rapid.Int64Range(1, 1e15).Draw(t, "log")
	p.Limits.Budget = math.Round(rapid.Float64Range(0, 1e5).Draw(t, "budget")*100) / 100
	p.Environment.Optional = rapid.Bool().Draw(t, "optional")
	for _, list := range []*[]string{&p.Environment.Before, &p.Environment.After, &p.Environment.Mounts} {
		if *list = rapid.SliceOfNDistinct(line(), 0, 3, rapid.ID).Draw(t, "lines"); len(*list) == 0 {
			*list = nil
		}
	}
	if kind := rapid.SampledFrom([]string{"system", "venv", "conda", "docker"}).Draw(t, "kind"); kind != "system" {
		p.Environment.Kind, p.Environment.File = kind, "a"+rapid.StringMatching(`[a-z./]{1,9}`).Draw(t, "file")
	}
	if p.Environment.Kind != "docker" {
		p.Environment.Mounts = nil // they are a container's
	}
	drawMachines(t, p)
	return p
}

func drawMachines(t *rapid.T, p *Profile) {
	m := &p.Machines
	m.Count = rapid.IntRange(1, 1000).Draw(t, "count")
	switch p.Provider {
	case "local":
		p.Own().(*local.Machines).SimulateGPUs = rapid.IntRange(0, 16).Draw(t, "simulated")
	case "hosts":
		own := p.Own().(*hosts.Machines)
		own.Hosts = rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,5}@[a-z]{1,9}(:22)?`), 1, 4, rapid.ID).Draw(t, "hosts")
		m.Count = rapid.IntRange(1, len(own.Hosts)).Draw(t, "of hosts")
	case "ec2":
		m.Regions = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"us-east-1", "eu-west-2"}), 1, 2, rapid.ID).Draw(t, "regions")
		m.Disk = rapid.Int64Range(1, 1e15).Draw(t, "disk")
		m.Spot = rapid.Bool().Draw(t, "spot")
		m.Need = Need{GPUs: rapid.IntRange(1, 64).Draw(t, "gpus"), Memory: rapid.Int64Range(0, 1e12).Draw(t, "memory"),
			MaxPrice: math.Round(rapid.Float64Range(0, 99).Draw(t, "price")*100) / 100}
		if rapid.Bool().Draw(t, "model") {
			m.Need.GPU = []string{"A10G", "L4"}
		}
	case "ecs":
		m.Instance, m.Image = "g5.xlarge", "rayproject/ray:2.40.0-gpu"
	case "sagemaker":
		m.Instance = "ml.g5.xlarge"
		p.Own().(*sagemaker.Machines).Role = "Training"
	}
}

func TestGeneratedFilesAreFresh(t *testing.T) {
	for file, want := range map[string][]byte{"schema.json": JSONSchema(), "../docs/profile.md": Reference()} {
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s is stale: run go run ./profiles/gen", file)
		}
	}
}

func TestTheTableIsSound(t *testing.T) {
	for _, f := range Fields {
		if f.Doc == "" || !strings.HasSuffix(f.Doc, ".") || f.Example == "" || f.Type == nil || f.ref == nil {
			t.Errorf("%s: something is missing", f.Key)
		}
		if g := parent(f.Key); !isGroup(g) {
			t.Errorf("%s: its group %q is not listed", f.Key, g)
		}
		for _, p := range slices.Concat(f.Providers, f.RequiredFor) {
			if p != "*" && !slices.Contains(Providers, p) {
				t.Errorf("%s: unknown provider %s", f.Key, p)
			}
		}
		if f.Default != "" && strings.TrimSpace(f.Type.format(f, f.ref(defaults()))) != f.Default {
			t.Errorf("%s: default %s is written as %s", f.Key, f.Default, f.Type.format(f, f.ref(defaults())))
		}
	}
}

func TestEveryKeyOfAProviderIsAKey(t *testing.T) {
	for _, p := range providers.All {
		for _, key := range slices.Concat(p.Keys, p.Needs) {
			if fieldByKey[key] == nil {
				t.Errorf("profiles have no key %s, which %s has", key, p.Name)
			}
		}
	}
}
