package profiles

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// lay writes files into a new directory and returns it. A name that ends with
// a slash is a directory.
func lay(t *testing.T, all map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "My Model")
	for name, text := range all {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(path, 0o755)
		} else {
			mode := os.FileMode(0o644)
			if bare, runs := strings.CutSuffix(path, "!"); runs { // an executable
				path, mode = bare, 0o755
			}
			err = os.WriteFile(path, []byte(text), mode)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func load(t *testing.T, dir string) *Profile {
	t.Helper()
	p, err := Load(filepath.Join(dir, "p.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestMissingFilesAreNamedWithTheNearestOnes(t *testing.T) {
	const bare = "run: {command: train.py}\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"all there": {map[string]string{"p.yaml": "environment: {venv: req/dev.txt}\n" + bare, "train.py": "", "req/dev.txt": ""}, nil},
		"misspelt": {map[string]string{"p.yaml": "environment: {venv: requirement.txt}\nrun: {command: python -u trian.py --lr 1}\n", "train.py": "", "requirements.txt": ""},
			[]string{`p.yaml:1:21: "requirement.txt": it does not exist in DIR; did you mean "requirements.txt"?`,
				`p.yaml:2:26: "trian.py": it does not exist in DIR; did you mean "train.py"?`}},
		"sum of what is in S3": {map[string]string{"p.yaml": "data: {train: {from: 's3://lab/set', sha256: " + strings.Repeat("0", 64) + "}}\n" + bare, "train.py": ""},
			[]string{`p.yaml:1:15: "s3://lab/set": what lies in S3 has no SHA-256; leave sha256 out: its objects are told by their ETag`}},
		"quoted":    {map[string]string{"p.yaml": "run: {command: \"'my train.py' -x\"}\n", "my_train.py": ""}, []string{`p.yaml:1:18: "my train.py": it does not exist in DIR; did you mean "my_train.py"?`}},
		"elsewhere": {map[string]string{"p.yaml": bare, "src/train.py": ""}, []string{`p.yaml:1:16: "train.py": it does not exist in DIR; did you mean "src/train.py"?`}},
		"nothing like it": {map[string]string{"p.yaml": bare, "notes.txt": ""},
			[]string{`p.yaml:1:16: "train.py": it does not exist in DIR; paths are relative to the code directory; make the file, or name another`}},
		"a directory":   {map[string]string{"p.yaml": bare, "train.py/": ""}, []string{`p.yaml:1:16: "train.py": it is no file; name a file in DIR`}},
		"code dir":      {map[string]string{"p.yaml": "code: {dir: scr}\n" + bare, "src/train.py": ""}, []string{`p.yaml:1:13: "scr": it does not exist; did you mean "src"?; name the directory that the training runs in`}},
		"code dir file": {map[string]string{"p.yaml": "code: {dir: src}\n" + bare, "src": ""}, []string{`p.yaml:1:13: "src": it is no directory; name the directory that the training runs in`}},
		"in code dir":   {map[string]string{"p.yaml": "code: {dir: ../My Model/src}\nenvironment: {conda: e.yml}\n" + bare, "src/train.py": "", "src/e.yml": ""}, nil},
		"other command": {map[string]string{"p.yaml": "run: {command: bash run.sh eval.py}\n"}, nil},
		"a notebook": {map[string]string{"p.yaml": "run: {command: train.ipynb}\n", "train.ipynb": "{}"},
			[]string{`p.yaml:1:16: "train.ipynb": it is a notebook, which Python does not run; jupyter nbconvert --to script train.ipynb makes a script of it`}},
		"a notebook for Python": {map[string]string{"p.yaml": "run: {command: python -u nb/train.ipynb}\n", "nb/train.ipynb": "{}"},
			[]string{`p.yaml:1:26: "nb/train.ipynb": it is a notebook, which Python does not run; jupyter nbconvert --to script nb/train.ipynb makes a script of it`}},
		"a notebook for its own program": {map[string]string{"p.yaml": "run: {command: jupyter execute train.ipynb}\n", "train.ipynb": "{}"}, nil},
		"a shell script by its name alone": {map[string]string{"p.yaml": "run: {command: train.sh 1}\n", "train.sh": "echo\n"},
			[]string{`p.yaml:1:16: "train.sh": a command without a / is looked for on the PATH, and not in the code directory; sh train.sh, or ./train.sh`}},
		"a shell script that is not executable": {map[string]string{"p.yaml": "run: {command: ./train.sh}\n", "train.sh": "#!/bin/sh\n"},
			[]string{`p.yaml:1:16: "./train.sh": it is not executable; chmod +x ./train.sh, or name its interpreter before it`}},
		"a shell script with a name for a trap": {map[string]string{"p.yaml": "run: {command: \"'./a;ls b.sh' 1\"}\n", "a;ls b.sh": "#!/bin/sh\n"},
			[]string{`p.yaml:1:18: "./a;ls b.sh": it is not executable; chmod +x './a;ls b.sh', or name its interpreter before it`}},
		"a shell script of Windows's": {map[string]string{"p.yaml": "run: {command: bin/train -x}\n", "bin/train!": "#!/bin/sh\r\necho\r\n"},
			[]string{`p.yaml:1:16: "bin/train": its first line ends with a carriage return, which counts as a part of its interpreter's name; sed -i 's/\r$//' bin/train takes them out of the file`}},
		"an executable":                {map[string]string{"p.yaml": "run: {command: bin/train -x}\n", "bin/train!": "#!/bin/sh\necho\n"}, nil},
		"something that is made there": {map[string]string{"p.yaml": "run: {command: ./a.out}\n"}, nil},
		"a command of the node's":      {map[string]string{"p.yaml": "run: {command: make train}\n", "make": "x"}, nil},
		"a module":                     {map[string]string{"p.yaml": "run: {command: -m pkg.train x.py}\n"}, nil},
		"an image":                     {map[string]string{"p.yaml": "environment: {docker: pytorch/pytorch}\n" + bare, "train.py": ""}, nil},
		"a Dockerfile":                 {map[string]string{"p.yaml": "environment: {docker: Dockerfile.gpu}\n" + bare, "train.py": "", "Dockerfile": ""}, []string{`p.yaml:1:23: "Dockerfile.gpu": it does not exist in DIR; paths are relative to the code directory; make the file, or name another`}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := lay(t, c.files)
			err := load(t, dir).CheckFiles()
			if c.want == nil {
				if err != nil {
					t.Fatalf("got %v", err)
				}
				return
			}
			var faults Errors
			if !errors.As(err, &faults) {
				t.Fatalf("got %v, want Errors", err)
			}
			got := strings.ReplaceAll(strings.ReplaceAll(faults.Error(), dir+string(filepath.Separator), ""), dir, "DIR")
			if got != strings.Join(c.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", got, strings.Join(c.want, "\n"))
			}
			for _, e := range faults {
				if lines := strings.Split(e.Detail(), "\n"); len(lines) != 3 || !strings.Contains(lines[2], "^") {
					t.Errorf("no caret:\n%s", e.Detail())
				}
			}
		})
	}
}

func TestLoadNamesWhatItCannotRead(t *testing.T) {
	dir := lay(t, map[string]string{"charlm.yaml": "run: {command: train.py}", "big.yaml": strings.Repeat("# x\n", MaxSize), "sub/": ""})
	for name, want := range map[string]string{
		"chralm.yaml": "charlm.yaml", "sub": "it is a directory", "big.yaml": "more than 65536 bytes", "none.yaml": "dlwb init",
	} {
		if _, err := Load(filepath.Join(dir, name)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want it to say %q", name, err, want)
		}
	}
	if _, err := Load(filepath.Join(dir, "none.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want ErrNotExist", err)
	}
	p, err := Load(filepath.Join(dir, "charlm.yaml"))
	if err != nil || p.Path != filepath.Join(dir, "charlm.yaml") || p.CodeDir() != dir || p.Name != "my-model" {
		t.Errorf("got %+v, %v", p, err)
	}
}

func TestALaterFaultNamesItsPlace(t *testing.T) {
	p := mustParse(t, "x.yaml", []byte("\uFEFFrun:\n  command: 'train.py --x'\n"))
	e := p.Fault("run.command", `"train.py"`, "it is gone", "", "bring it back")
	if got := e.Detail(); got != "x.yaml:2:12: \"train.py\": it is gone; bring it back\n  2 |   command: 'train.py --x'\n    |            ^^^^^^^^^^^^^^" {
		t.Errorf("got\n%s", got)
	}
	if e := (&Profile{}).Fault("name", "name", "bad", "", ""); e.Detail() != "name: bad" {
		t.Errorf("a profile made in memory: %q", e.Detail())
	}
}

func TestTheHashChangesWithPathAndContent(t *testing.T) {
	a, b := &Profile{Path: "/a", Source: "x"}, &Profile{Path: "/a", Source: "y"}
	c := &Profile{Path: "/b", Source: "x"}
	if a.Hash() == b.Hash() || a.Hash() == c.Hash() || len(a.Hash()) != 64 || a.Hash() != (&Profile{Path: "/a", Source: "x"}).Hash() {
		t.Error(a.Hash(), b.Hash(), c.Hash())
	}
}

// allKinds are the kinds of environments that a profile may name.
var allKinds = []string{"system", "venv", "conda", "docker"}

// What can't be made is not chosen, so that the profile can be used at once;
// the notes say what it means.
func TestDetectChoosesWhatCanBeMade(t *testing.T) {
	p, notes, err := Detect(lay(t, map[string]string{"train.py": "", "environment.yml": "", "Dockerfile": ""}), []string{"system", "venv"})
	if err != nil || p.Environment.Kind != "system" {
		t.Fatalf("got %+v, %v", p, err)
	}
	said := strings.Join(notes, "\n")
	for _, s := range []string{"environment.yml is there, but", "no conda environments, only system and venv", "Dockerfile is there, but", "the Python that is on the node"} {
		if !strings.Contains(said, s) {
			t.Errorf("%q is not said in %q", s, notes)
		}
	}
}

func TestAWrittenProfileIsOneForPeople(t *testing.T) {
	p, _, err := Detect(lay(t, map[string]string{"train.py": "open('outputs/x', 'w')", "requirements.txt": ""}), allKinds)
	if err != nil {
		t.Fatal(err)
	}
	const want = `# A profile of dlwb: one experiment. All keys: dlwb help profile

# The name of the experiment; without it, the name of the profile's directory.
name: my-model

# Where the machines come from.
provider: local

machines:
  # How many nodes; with the hosts provider, all hosts when not given.
  count: 1

environment:
  # A virtual environment with the packages of this requirements file, or the dependencies of this pyproject.toml, which lies in the code directory; by uv where the node has it, else by pip.
  venv: requirements.txt

run:
  # The training command, run in the code directory; a .py file is run with the environment's Python.
  command: train.py

results:
  # What is brought home from node 0, relative to the code directory.
  paths: [outputs]
`
	if got := string(Write(p)); got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestDetectFindsTheExperiment(t *testing.T) {
	dir := lay(t, map[string]string{
		"train.py": "import torch.distributed as dist\nopen('./checkpoints/x', 'w')\nlogs = \"runs\"\n", "train_big.py": "", "main.py": "",
		"requirements.txt": "", "Dockerfile": "", "outputs/": "", "results": "a file", "train_dir.py/": "",
	})
	p, notes, err := Detect(dir, allKinds)
	if err != nil {
		t.Fatal(err)
	}
	want := defaults()
	want.Name, want.Run.Command, want.Run.Engine = "my-model", "train.py", "torchrun"
	want.Environment.Kind, want.Environment.File = "venv", "requirements.txt"
	want.Results.Paths = []string{"outputs", "runs", "checkpoints"}
	if !Equal(p, want) {
		t.Errorf("got %+v\nwant %+v", p, want)
	}
	if !reflect.DeepEqual(notes, []string{
		"train.py is the training script; not chosen: train_big.py, main.py",
		"requirements.txt: the environment is {venv: requirements.txt}",
		"Dockerfile is there too; {docker: Dockerfile} would use it",
		"train.py uses torch.distributed: the engine is torchrun",
		"results: outputs, runs, checkpoints",
	}) {
		t.Errorf("notes: %q", notes)
	}
	if err := p.CheckFiles(); err != nil {
		t.Errorf("what was detected does not hold: %v", err)
	}
	if again := mustParse(t, p.Path, Write(p)); !Equal(p, again) {
		t.Errorf("written as\n%s", Write(p))
	}
}

func TestDetectTakesTheBestThereIs(t *testing.T) {
	for name, c := range map[string]struct {
		files         map[string]string
		command, kind string
	}{
		"one of many":   {map[string]string{"train_a.py": "", "train_bb.py": "", "run.py": ""}, "train_a.py", "system"},
		"main":          {map[string]string{"main.py": "", "run.py": "", "environment.yml": ""}, "main.py", "conda"},
		"run":           {map[string]string{"run.py": "", "Dockerfile": "", "constrain.py": ""}, "run.py", "docker"},
		"trainer":       {map[string]string{"trainer.py": "", "main.py": ""}, "trainer.py", "system"},
		"odd file name": {map[string]string{"train-2.final.py": ""}, "train-2.final.py", "system"},
	} {
		p, notes, err := Detect(lay(t, c.files), allKinds)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if p.Run.Command != c.command || p.Environment.Kind != c.kind || p.Run.Engine != "auto" || len(notes) < 3 {
			t.Errorf("%s: got %s, %s, %s, %q", name, p.Run.Command, p.Environment.Kind, p.Run.Engine, notes)
		}
	}
}

func TestDetectFindsAScriptBelowTheTop(t *testing.T) {
	for name, c := range map[string]struct {
		files              map[string]string
		command, env, note string
	}{
		"in a directory": {map[string]string{"scripts/train.py": "", "scripts/deep/train.py": "", "tests/train_test.py": "", "venv/train.py": ""}, "scripts/train.py", "",
			"scripts/train.py is the training script; not chosen: scripts/deep/train.py"},
		"in a package": {map[string]string{"pkg/__init__.py": "", "pkg/sub/__init__.py": "", "pkg/sub/main.py": ""}, "python -m pkg.sub.main", "", ""},
		"in a package that lies in src": {map[string]string{"src/pkg/__init__.py": "", "src/pkg/train.py": ""}, "python -m pkg.train", "src",
			"src/pkg/train.py is the training script, of a package: python -m pkg.train runs it"},
		"no module's name":            {map[string]string{"my-pkg/__init__.py": "", "my-pkg/train.py": ""}, "my-pkg/train.py", "", ""},
		"the top of a package itself": {map[string]string{"__init__.py": "", "train.py": ""}, "train.py", "", ""},
	} {
		dir := lay(t, c.files)
		if _, _, err := Detect(dir, allKinds); name != "the top of a package itself" && (err == nil || !strings.Contains(err.Error(), "the top of its project")) {
			t.Errorf("%s, in a directory that may be anything: %v", name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, "setup.py"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		p, notes, err := Detect(dir, allKinds)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		env := ""
		if len(p.Run.Env) == 1 && p.Run.Env[0].Name == "PYTHONPATH" {
			env = p.Run.Env[0].Value
		}
		if p.Run.Command != c.command || env != c.env || c.note != "" && notes[0] != c.note {
			t.Errorf("%s: got %q, PYTHONPATH %q, %q", name, p.Run.Command, env, notes)
		}
		if again := mustParse(t, p.Path, Write(p)); !Equal(p, again) {
			t.Errorf("%s: written as\n%s", name, Write(p))
		}
	}
	for _, none := range []string{"a/b/c/d/train.py", ".hidden/train.py", "node_modules/x/main.py"} {
		if p, _, err := Detect(lay(t, map[string]string{none: "", "setup.py": ""}), allKinds); err == nil {
			t.Errorf("%s: %q", none, p.Run.Command)
		}
	}
}

func TestDetectTakesThePackagesOfAPyproject(t *testing.T) {
	for name, c := range map[string]struct{ text, file string }{
		"listed":            {"[build-system]\nrequires = [\"x\"]\n\n[project]\nname = \"p\"\nkeywords = [\"a\", \"b\"]\ndependencies = [\n  \"torch\",\n]\n", "pyproject.toml"},
		"in one line":       {"[project]\ndependencies=['torch']\n[tool.x]\n", "pyproject.toml"},
		"CRLF":              {"[project]\r\ndependencies = [\"torch\"]\r\n", "pyproject.toml"},
		"none":              {"[project]\nname = \"p\"\ndependencies = []\n", ""},
		"of something else": {"[project]\nname = \"p\"\n[tool.x]\ndependencies = [\"torch\"]\n", ""},
		"poetry":            {"[tool.poetry.dependencies]\ntorch = \"*\"\n", ""},
	} {
		p, notes, err := Detect(lay(t, map[string]string{"train.py": "", "pyproject.toml": c.text}), allKinds)
		if err != nil || p.Environment.File != c.file || c.file == "" && !strings.Contains(strings.Join(notes, "\n"), "pyproject.toml lists no packages") {
			t.Errorf("%s: %+v, %q, %v", name, p, notes, err)
		}
	}
	p, notes, err := Detect(lay(t, map[string]string{"train.py": "", "requirements.txt": "", "pyproject.toml": "[project]\ndependencies=['torch']\n"}), allKinds)
	if err != nil || p.Environment.File != "requirements.txt" || !slices.Contains(notes, "pyproject.toml is there too; {venv: pyproject.toml} would use it") {
		t.Errorf("%+v, %q, %v", p, notes, err)
	}
}

func TestDetectSaysWhatItLookedFor(t *testing.T) {
	_, _, err := Detect(lay(t, map[string]string{"model.py": ""}), allKinds)
	if err == nil || !strings.Contains(err.Error(), "train*.py, main.py or run.py") {
		t.Errorf("got %v", err)
	}
	home := lay(t, map[string]string{"exp/train.py": "", ".git/": ""})
	t.Setenv("HOME", home)
	if p, _, err := Detect(home, allKinds); err == nil {
		t.Errorf("a whole home would be sent for %s", p.Run.Command)
	}
	if _, _, err := Detect(filepath.Join(t.TempDir(), "nowhere"), allKinds); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
