package environment

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// realConda is a real conda, mamba or micromamba: DLWB_TEST_CONDA, or one on the PATH.
func realConda(t testing.TB) string {
	t.Helper()
	for _, name := range []string{os.Getenv("DLWB_TEST_CONDA"), "micromamba", "mamba", "conda"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path
		}
	}
	t.Skip("NOT RUN: there is no conda, mamba or micromamba here; make test-environments says how to name one in DLWB_TEST_CONDA")
	return ""
}

// channelPython writes a channel: the argument. Its python is this machine's, in
// the form of a package, with a script that activation runs.
const channelPython = `
import bz2, hashlib, io, json, os, sys, tarfile
root, exe = sys.argv[1:3]
def package(name, version, files, links=(), depends=()):
    index = dict(name=name, version=version, build="0", build_number=0, depends=list(depends), subdir="linux-64", arch="x86_64", platform="linux")
    paths = [dict(_path=n, path_type="hardlink", sha256=hashlib.sha256(t).hexdigest(), size_in_bytes=len(t)) for n, t in files.items()]
    paths += [dict(_path=n, path_type="softlink", sha256=hashlib.sha256(b"").hexdigest(), size_in_bytes=0) for n in dict(links)]
    info = {"info/index.json": json.dumps(index), "info/paths.json": json.dumps(dict(paths=paths, paths_version=1)),
            "info/files": "".join(p["_path"] + "\n" for p in paths)}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:bz2") as tar:
        for n, t in list(info.items()) + list(files.items()):
            t = t.encode() if isinstance(t, str) else t
            member = tarfile.TarInfo(n); member.size = len(t); member.mode = 0o644
            tar.addfile(member, io.BytesIO(t))
        for n, to in dict(links).items():
            member = tarfile.TarInfo(n); member.type = tarfile.SYMTYPE; member.linkname = to
            tar.addfile(member)
    data = out.getvalue()
    fn = "%s-%s-0.tar.bz2" % (name, version)
    os.makedirs(os.path.join(root, "linux-64"), exist_ok=True)
    with open(os.path.join(root, "linux-64", fn), "wb") as f:
        f.write(data)
    return fn, dict(index, md5=hashlib.md5(data).hexdigest(), sha256=hashlib.sha256(data).hexdigest(), size=len(data))
v = "%d.%d" % sys.version_info[:2]
import ensurepip, glob, zipfile
wheel = glob.glob(os.path.join(os.path.dirname(ensurepip.__file__), "_bundled", "pip-*.whl")) or glob.glob("/usr/share/python-wheels/pip-*.whl")
with zipfile.ZipFile(wheel[0]) as z:
    pip = {"lib/python%s/site-packages/%s" % (v, n): z.read(n) for n in z.namelist() if not n.endswith("/")}
packages = dict([
    package("pip", "1.0", pip, depends=["python"]),
    package("python", v + ".0", {"pyvenv.cfg": ("home = %s\ninclude-system-site-packages = false\n" % os.path.dirname(exe)).encode(),
        "etc/conda/activate.d/dlwb.sh": b'export DLWB_ACTIVATED="$CONDA_PREFIX/x"\n', "lib/python%s/site-packages/README" % v: b"x"}, {"bin/python": exe}),
    package("dlwbone", "1.0", {"lib/python%s/site-packages/dlwbone.py" % v: b"version = '1.0'\n"}, depends=["python"]),
    package("dlwbtwo", "2.0", {"lib/python%s/site-packages/dlwbtwo.py" % v: b"version = '2.0'\n"}, depends=["python"]),
    package("dlwbthree", "3.0", {"lib/python%s/site-packages/dlwbthree.py" % v: b""}, depends=["python", "dlwbtwo >=7"]),
    package("dlwbfour", "4.0", {"lib/python%s/site-packages/dlwbfour.py" % v: b""}, depends=["python", "dlwbone <1"]),
    package("dlwbone", "0.5", {"lib/python%s/site-packages/dlwbone.py" % v: b"version = '0.5'\n"}, depends=["python"]),
])
for subdir, all in (("linux-64", packages), ("noarch", {})):
    os.makedirs(os.path.join(root, subdir), exist_ok=True)
    with open(os.path.join(root, subdir, "repodata.json"), "w") as f:
        json.dump(dict(info=dict(subdir=subdir), packages=all, **{"packages.conda": {}}, removed=[], repodata_version=1), f)
`

// withConda is a node whose conda lies where its installer puts it, and a channel
// of packages on it.
func withConda(t testing.TB) (l *local, channel string) {
	t.Helper()
	conda, exe := realConda(t), python(t, "__import__('ensurepip')", "apt-get install python3-venv")
	l = newLocal(t)
	l.limit = 10 * time.Minute // conda is slow, and slower on a machine that has other work
	l.env[1] = "PATH=" + os.Getenv("PATH")
	l.env = append(l.env, "CONDA_SOLVER=classic", "CONDA_OFFLINE=true", "CONDA_PKGS_DIRS="+t.TempDir(), "MAMBA_ROOT_PREFIX="+t.TempDir())
	dir := filepath.Join(l.home, "miniforge3/bin")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(conda, filepath.Join(dir, filepath.Base(conda))); err != nil {
		t.Fatal(err)
	}
	return l, writeChannel(t, exe)
}

// writeChannel makes a channel whose Python is exe.
func writeChannel(t testing.TB, exe string) string {
	t.Helper()
	channel := t.TempDir()
	if out, err := exec.Command(exe, "-c", channelPython, channel, exe).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return channel
}

func condaSpec(channel string, packages ...string) Spec {
	text := fmt.Sprintf("channels: [\"file://%s\", nodefaults]\ndependencies:\n", channel)
	for _, p := range packages {
		text += "  - " + p + "\n"
	}
	return Spec{Kind: Conda, Cluster: "c", File: "environment.yml", Content: text + "variables: {DLWB_VARIABLE: \"it's set\"}\n"}
}

func TestACondaEnvironmentIsMadeOnceAndAnewWhenItsFileChanges(t *testing.T) {
	t.Parallel()
	l, channel := withConda(t)
	spec := condaSpec(channel, "python", "dlwbone")
	r := l.must(spec)
	prefix := filepath.Join(l.home, "dlwb/c/conda")
	if r.Python != prefix+"/bin/python" || r.Kind != Conda || r.Skipped {
		t.Errorf("got %+v", r)
	}
	if got := l.python(r, "import dlwbone, os; print(dlwbone.version, os.environ['DLWB_VARIABLE'], os.environ['DLWB_ACTIVATED'], os.environ['CONDA_PREFIX'])"); got != "1.0 it's set "+prefix+"/x "+prefix {
		t.Errorf("the environment says %q", got)
	}
	r = l.must(spec)
	if contains(t, r.Text, "environment.yml did not change"); !r.Skipped || l.trips != 1 {
		t.Errorf("skipped %v in %d round trips", r.Skipped, l.trips)
	}
	r = l.must(condaSpec(channel, "python", "dlwbtwo"))
	if got := l.python(r, "import dlwbtwo, importlib.util as u; print(dlwbtwo.version, u.find_spec('dlwbone'))"); got != "2.0 None" || r.Skipped {
		t.Errorf("after a change: %q, skipped %v", got, r.Skipped)
	}
}

func TestACondaEnvironmentThatCannotBeMadeSaysWhy(t *testing.T) {
	t.Parallel()
	l, channel := withConda(t)
	f := l.mustFail(condaSpec(channel, "python", "dlwbnowhere=7"))
	contains(t, f.Why, "dlwbnowhere", "in the channels of environment.yml")
	contains(t, f.Command, "create", "dlwb/c/conda")
	if len(f.LastLines) == 0 || f.ExitCode == 0 {
		t.Errorf("got %+v", f)
	}
	noFile(t, filepath.Join(l.home, "dlwb/c/conda"))
	f = l.mustFail(condaSpec(channel, "python", "dlwbone=1.0", "dlwbfour"))
	contains(t, f.Why, "the packages in environment.yml exclude each other")
	if len(f.LastLines) == 0 || f.ExitCode == 0 {
		t.Errorf("got %+v", f)
	}
	f = l.mustFail(condaSpec(channel, "python", "dlwbthree")) // it needs what is nowhere
	contains(t, f.Why, "environment.yml")
	noFile(t, filepath.Join(l.home, "dlwb/c/conda"))
	f = l.mustFail(condaSpec(channel, "dlwbone", "python", "pip", "pip:\n      - dlwb-no-such-package==1"))
	noFile(t, filepath.Join(l.home, "dlwb/c/conda"))
	if f.ExitCode == 0 {
		t.Errorf("pip's failure is taken for success: %+v", f)
	}
	spec := condaSpec(channel, "python")
	spec.Content = "dependencies: {"
	l.mustFail(spec)
}

// What the tools say in ways that this machine's one does not.
func TestWhatCondaSaysIsExplained(t *testing.T) {
	p := preparer{spec: Spec{Kind: Conda, File: "env.yml"}}
	for said, want := range map[string]string{
		"error    libmamba Could not solve for environment specs\n    The following package could not be installed\n    └─ dlwbno =* * does not exist (perhaps a typo or a missing channel).\ncritical libmamba Could not solve for environment specs": "there is no dlwbno in the channels of env.yml",
		"LibMambaUnsatisfiableError: Encountered problems while solving:\n  - nothing provides requested torchx 9**":                                                                                                                                   "there is no torchx 9** in the channels of env.yml",
		"ResolvePackageNotFound: \n  - cudatoolkit=99": "there is no cudatoolkit=99 in the channels",
		"CondaToSNonInteractiveError: Terms of Service have not been accepted for the following channels. Please accept or remove them":     "ask that their terms of service are accepted",
		"CondaHTTPError: HTTP 000 CONNECTION FAILED for url <https://conda.anaconda.org/conda-forge/linux-64/repodata.json>":                "can't be reached from the node",
		"critical libmamba Download error (6) Couldn't resolve host name [https://conda.anaconda.org/conda-forge/noarch/repodata.json.zst]": "can't be reached from the node",
		"EnvironmentSectionNotValid: The following section on '/x/environment.yml' is invalid and will be ignored":                          "no environment file that conda understands",
		"OSError: [Errno 28] No space left on device": "the node's disk is full",
	} {
		if f := p.condaFailure(nil, 1, strings.Split(said, "\n")); !strings.Contains(f.Why, want) || f.Next == "" {
			t.Errorf("%q\nis explained as %q", said, f.Why)
		}
	}
}

// Without a net, as here, the failure says that micromamba would have been fetched.
func TestWithoutCondaMicromambaIsFetchedAndCheckedOrItIsSaid(t *testing.T) {
	t.Parallel()
	l := newLocal(t, script(t, "exit 1"))
	curl := t.TempDir()
	for _, name := range []string{"find", "sed", "tr", "flock", "sha256sum", "chmod"} {
		if real, err := exec.LookPath(name); err == nil {
			_ = os.Symlink(real, filepath.Join(curl, name))
		}
	}
	l.env[1] += ":" + curl
	spec := Spec{Kind: Conda, Cluster: "c", Content: "dependencies: [python]\n"}
	give := func(text string) {
		program(t, filepath.Join(curl, "curl"), "#!/bin/sh\n"+text+"\n")
	}
	give("echo 'curl: (6) Could not resolve host' >&2; exit 6")
	f := l.mustFail(spec)
	contains(t, f.Why, "micromamba can't be fetched")
	contains(t, strings.Join(f.LastLines, "\n"), "Could not resolve host")
	// What is not the file that is known is not run.
	give(`while [ $# -gt 1 ]; do [ "$1" = --output ] && printf '#!/bin/sh\ntouch "$HOME/ran"\n' >"$2"; shift; done`)
	f = l.mustFail(spec)
	contains(t, strings.Join(f.LastLines, "\n"), "its SHA-256 is another")
	noFile(t, filepath.Join(l.home, "ran"))
	noFile(t, filepath.Join(l.home, ".dlwb/micromamba/bin/micromamba"))
}
