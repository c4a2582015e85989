package environment

import (
	"context"
	_ "embed" // the scripts
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/containers"
	"github.com/dlwb/dlwb/internal/dockerfile"
	"github.com/dlwb/dlwb/internal/shellword"
	"github.com/dlwb/dlwb/internal/units"
)

// containerShell gives a node its image.
//
//go:embed scripts/container.sh
var containerShell string

// runShell starts a command in a container.
//
//go:embed scripts/run.sh
var runShell string

// condaDockerfile makes an image of an environment.yml.
const condaDockerfile = `FROM docker.io/mambaorg/micromamba:2.3.3
COPY %s /tmp/environment.yml
RUN micromamba install --yes --name base --file /tmp/environment.yml && micromamba clean --all --yes
ENV PATH=/opt/conda/bin:$PATH`

// image is what the image of a node is made from.
type image struct {
	name       string // that exists; empty: it is built
	dockerfile string // in the code directory
	own        string // the text of one
	sources    []string
}

func (s Spec) image() (image, error) {
	switch base := path.Base(s.File); {
	case s.Content == "":
		return image{name: s.File}, nil
	case strings.HasSuffix(base, ".yml") || strings.HasSuffix(base, ".yaml"):
		words, err := json.Marshal([]string{s.File, "/tmp/environment.yml"})
		if err != nil {
			return image{}, err
		}
		text := strings.Replace(condaDockerfile, "%s /tmp/environment.yml", string(words), 1)
		return image{own: text, sources: []string{s.File}}, nil
	}
	return image{dockerfile: s.File, sources: dockerfile.Sources(s.Content)}, nil
}

// docker gives the program that stands for Python in a container.
func (p preparer) docker(ctx context.Context) (Result, error) {
	if p.spec.Python != "" {
		return Result{}, fmt.Errorf("environment: Python %s can't be chosen beside an image, which brings its own: leave environment.python out", p.spec.Python)
	}
	img, err := p.spec.image()
	if err != nil {
		return Result{}, err
	}
	p.progress("looking for the image")
	began := time.Now()
	if !p.spec.Force {
		n, said, err := p.containerCommand(ctx, img, "")
		if err != nil {
			return Result{}, err
		}
		if _, same := said["unchanged"]; same && n.venv != nil {
			return p.containerResult(n, said, p.what()+" did not change since it was set up", true), nil
		}
	}
	how := "yes"
	if p.spec.Force {
		how = "force"
	}
	limited, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	n, said, err := p.containerCommand(limited, img, how)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = p.overdue()
	}
	if err != nil {
		return Result{}, err
	}
	return p.containerResult(n, said, "set up in "+units.Duration(time.Since(began)), false), nil
}

// what is the image in words.
func (p preparer) what() string {
	if p.spec.Content == "" {
		return "the image " + p.spec.File
	}
	return "the image of " + p.spec.File
}

// containerDir is below the home directory.
func (p preparer) containerDir() string {
	return "dlwb/" + p.spec.Cluster + "/" + containers.Prefix + p.spec.suffix()
}

func (p preparer) containerResult(n node, said map[string]string, why string, skipped bool) Result {
	dir := n.home + "/" + p.containerDir()
	r := Result{Kind: Docker, Python: dir + "/python", Version: n.venv.Version, Torch: n.venv.Torch, Home: n.home,
		Wrap: []string{dir + "/run"}, Skipped: skipped}
	r.Text = fmt.Sprintf("Python %s in %s, by %s; %s", n.venv.Version, p.what(), said["engine"], why)
	if r.Torch != "" {
		r.Text = strings.Replace(r.Text, " in ", " with PyTorch "+r.Torch+" in ", 1)
	}
	return r
}

// containerCommand runs container.sh: with how empty it only looks. said is what
// it told, by its words.
func (p preparer) containerCommand(ctx context.Context, img image, how string) (n node, said map[string]string, err error) {
	var line strings.Builder
	mounts := strings.Join(p.spec.Mounts, "\n")
	for _, v := range [][2]string{
		{"dir", p.containerDir()}, {"context", p.spec.Code}, {"image", img.name}, {"dockerfile", img.dockerfile}, {"own", img.own},
		{"sources", strings.Join(img.sources, "\n")}, {"mounts", mounts}, {"key", digest("container 1", containerShell, runShell, probePython, mounts)},
		{"probe", probePython}, {"run", runShell}, {"make", how},
	} {
		fmt.Fprintf(&line, "%s=%s\n", v[0], shellword.Quote(v[1]))
	}
	said = map[string]string{}
	var lines []string
	var last tail
	exit, errs, err := p.stream(ctx, line.String()+containerShell, func(text string) {
		if f := strings.SplitN(text, "\t", 3); len(f) == 3 && f[0] == "dlwb" {
			said[f[1]] = strings.TrimPrefix(said[f[1]]+"\n"+f[2], "\n")
			lines = append(lines, text)
		} else if text, ok := strings.CutPrefix(text, "|"); ok && strings.TrimSpace(text) != "" {
			last.add(text)
			p.progress(news(text))
		}
	})
	if err != nil {
		return node{}, nil, fmt.Errorf("environment: setting up %s: %w", p.what(), err)
	}
	n = readNode([]byte(strings.Join(lines, "\n")))
	if exit == 0 && (how == "" || n.venv != nil) {
		return n, said, nil
	}
	return n, said, p.containerFailure(said, exit, append(last, lastLines(errs)...))
}

// containerFailure says why there is no container.
func (p preparer) containerFailure(said map[string]string, exit int, last []string) *Failure {
	f := &Failure{Command: said["command"], ExitCode: exit, LastLines: readable(last, "", "")}
	switch {
	case said["engine"] == "none" && said["mute"] == "":
		f.Why, f.Next = "there is neither docker nor podman on the node", "install one of them there (Debian: apt-get install podman), or use venv or conda"
	case said["engine"] == "none":
		f.Why = "neither docker nor podman answers on the node: " + strings.ReplaceAll(said["mute"], "\n", "; ")
		f.Next = "start its service, or let your user on the node use it (sudo usermod -aG docker USER, then a new login)"
	case said["nogpu"] != "":
		f.Why = "the node has GPUs, and its containers can't have them: the NVIDIA Container Toolkit is not set up for " + last1(said["nogpu"])
		f.Next = "install nvidia-container-toolkit on the node, then: sudo nvidia-ctk runtime configure --runtime=docker and restart docker; " +
			"for podman: sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"
	case said["step"] == "python":
		f.Why, f.Next = p.what()+" has no Python, or no sh to look for it with", "use an image with both"
	default:
		p.explainContainer(f, exit)
	}
	return f
}

// last1 is the last word of a text.
func last1(text string) string {
	words := strings.Fields(text)
	return words[len(words)-1]
}

func (p preparer) explainContainer(f *Failure, exit int) {
	if f.Why, f.Next = dockerfile.Explain(f.LastLines, p.what(), dockerfile.Node); f.Why != "" {
		return
	}
	f.Why, f.Next = fmt.Sprintf("%s could not be set up (exit code %d)", p.what(), exit), "see its last lines, or run it by hand on the node"
}
