package profiles

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/internal/units"
)

// Examples are whole profiles for the reference page. Tests read each of them.
var Examples = []struct{ Title, Text string }{
	{"The least", `run:
  command: train.py
`},
	{"Two nodes on this machine", `name: charlm
machines: {count: 2}
environment: {venv: requirements.txt, optional: true}
run:
  engine: torchrun
  command: train.py --epochs 10
results: {paths: [outputs/]}
`},
	{"Two spot instances on EC2", `name: charlm
provider: ec2
machines:
  region: [us-east-1, us-west-2]
  instance: {gpu: A10G|L4, gpus: 1, memory: ">=24GB", max_price: 1.50}
  count: 2
  spot: true
  image: pytorch
  disk: 200GB
environment: {venv: requirements.txt}
code: {dir: ., exclude: [data/]}
run:
  engine: torchrun
  command: train.py --epochs 10
  env: {WANDB_API_KEY: "${env:WANDB_API_KEY}"}
metrics: {val/acc: 'top-1 (\d+\.\d+)'}
results: {paths: [outputs/], s3: s3://bucket/prefix, checkpoints: outputs/ckpt}
limits: {budget: 20USD, lifetime: 12h, idle: 30m}
forward: [jupyter, tensorboard, 8265]
`},
	{"Machines of one's own", `name: lab
provider: hosts
machines:
  hosts: [ada@gpu1, ada@gpu2:2222]
run:
  command: python3 train.py
`},
}

const referenceHead = `<!-- Made from profiles/fields.go by "go run ./profiles/gen". -->
# Profiles

A profile is one YAML file that describes one experiment. ` + "`dlwb init`" + ` writes one for the
present directory; ` + "`dlwb plan PROFILE`" + ` shows what it will do, and changes nothing.

Keys that are not listed here are errors, and so are keys that the provider does not have. All
faults of a file are told at once, each with its line and column. A profile has at most %s
and %d levels, and no anchors, aliases, merge keys, tags or second documents.

The format is wider than any one dlwb: ` + "`dlwb doctor`" + ` lists the providers, environments and engines
of yours. A profile that asks for another one is an error, and a key that yours does not act on is
named by ` + "`dlwb plan`" + `.

Secrets never stand in a profile: write ` + "`\"${env:NAME}\"`" + ` in ` + "`run.env`" + `, and export NAME before
starting dlwb; or name it yourself, by ` + "`dlwb run --secret NAME`" + `, and leave it out of the profile.

A profile may be a stranger's, so one that you did not write by ` + "`dlwb init`" + ` or on the screen does nothing
before you trust it: ` + "`dlwb trust PROFILE`" + ` shows what it would do and asks, ` + "`--trust=HASH`" + ` answers for one command.
That holds for its bytes, its ignore files and the files its environment is made from, until one of them changes.
Trusted or not, it sends only what lies in its own directory, and nothing that looks
like a secret; ` + "`docs/settings.md`" + ` says how you allow more.
`

// Reference is the page docs/profile.md, made from Fields.
func Reference() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, referenceHead, units.Binary(MaxSize), MaxDepth)
	for _, e := range Examples {
		fmt.Fprintf(&b, "\n## %s\n\n```yaml\n%s```\n", e.Title, e.Text)
	}
	b.WriteString("\n# Keys\n")
	for _, g := range Groups {
		title := "The profile itself"
		if g.Key != "" {
			title = "`" + g.Key + "`"
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", title, g.Doc)
		for _, word := range keysOf[g.Key] {
			if f := fieldByKey[join(g.Key, word)]; f != nil {
				referenceField(&b, f)
			}
		}
	}
	referenceTypes(&b)
	return []byte(b.String())
}

func referenceField(b *strings.Builder, f *Field) {
	fmt.Fprintf(b, "\n**`%s`** (%s", f.Key, f.Type.Name)
	if f.Allowed != nil {
		b.WriteString(": `" + strings.Join(f.Allowed, "`, `") + "`")
	}
	if f.Default != "" {
		fmt.Fprintf(b, "; default `%s`", f.Default)
	}
	switch {
	case f.RequiredFor == nil:
	case f.RequiredFor[0] == "*":
		b.WriteString("; required")
	default:
		b.WriteString("; required for " + strings.Join(f.RequiredFor, ", "))
	}
	if f.Providers != nil && !slices.Equal(f.Providers, f.RequiredFor) {
		b.WriteString("; only for " + strings.Join(f.Providers, ", "))
	}
	fmt.Fprintf(b, ")  \n%s Example: `%s: %s`\n", f.Doc, last(f.Key), f.Example)
}

// referenceTypes says how each kind of value is written.
func referenceTypes(b *strings.Builder) {
	b.WriteString("\n# Values\n\n| value | how it is written |\n|---|---|\n")
	seen := map[*Type]bool{}
	for _, f := range Fields {
		if !seen[f.Type] {
			seen[f.Type] = true
			fmt.Fprintf(b, "| %s | %s |\n", f.Type.Name, f.Type.Doc)
		}
	}
}
