package environment

import (
	"strings"
	"testing"
)

func TestWhatPipSaysIsExplained(t *testing.T) {
	debian := node{distro: "debian ", uid: "1000"}
	base := interpreter{Exe: "/usr/bin/python3", Version: "3.11.2"}
	for _, c := range []struct{ said, why, next string }{
		{"ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "disk is full", "df -h"},
		{"OSError: [Errno 122] Disk quota exceeded: '/home/u/x'", "quota is used up", "make room"},
		{"ERROR: Invalid requirement: 'a b' (from line 3 of r.txt)", "r.txt, line 3 is not a requirement: 'a b'", "one package a line"},
		{"ERROR: Could not open requirements file: [Errno 2] No such file or directory: 'more.txt'", "not on the node: more.txt", "write the packages into r.txt"},
		{"WARNING: Retrying after connection broken by 'NewConnectionError'\nERROR: No matching distribution found for torch", "index can't be reached", "--index-url in r.txt"},
		{"WARNING: Retrying (Retry(total=4)) after connection broken by 'NewConnectionError'\nCollecting a\nERROR: ResolutionImpossible: for help visit", "exclude each other", "loosen"},
		{"ERROR: Could not find a version that satisfies x\nERROR: No matching distribution found for torch==9", "there is no torch==9 for Python 3.11.2", "environment.python"},
		{"ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.", "hash in r.txt", "new hash"},
		{"ERROR: ResolutionImpossible: for help visit", "exclude each other", "loosen"},
		{"error: command '/usr/bin/x86_64-linux-gnu-gcc' failed: No such file or directory", "has to be compiled", "build-essential"},
		{"ssl.SSLCertVerificationError: CERTIFICATE_VERIFY_FAILED", "does not trust", "clock"},
		{"The virtual environment was not created successfully because ensurepip is not\navailable.", "can't put pip into", "sudo apt-get install -y python3.11-venv"},
		{"mkdir: cannot create directory: Permission denied", "does not let dlwb write", "who owns"},
		{"Collecting x\nERROR: something new", "pip could not install r.txt: something new", "last lines"},
		{"nothing known", "pip could not install r.txt (exit code 2)", "by hand"},
	} {
		f := Failure{ExitCode: 2, LastLines: strings.Split(c.said, "\n")}
		f.explain("pip", debian, "r.txt", base)
		if !strings.Contains(f.Why, c.why) || !strings.Contains(f.Next, c.next) {
			t.Errorf("%q\n  gave %q / %q\n  want %q / %q", c.said, f.Why, f.Next, c.why, c.next)
		}
	}
	killed := Failure{ExitCode: -9}
	killed.explain("pip", debian, "", base)
	if !strings.Contains(killed.Why, "killed") {
		t.Errorf("exit -9 gave %q", killed.Why)
	}
}

func TestNoPasswordOfAnIndexIsShown(t *testing.T) {
	got := readable([]string{"Looking in indexes: https://me:sesame@host/simple", "(from line 1 of /h/r.txt)"}, "/h/r.txt", "reqs.txt")
	want := "Looking in indexes: https://****@host/simple|(from line 1 of reqs.txt)"
	if strings.Join(got, "|") != want {
		t.Errorf("got %q", got)
	}
}

func TestInstallLinesFitTheSystem(t *testing.T) {
	for _, c := range []struct {
		node         node
		what, detail string
		want         string
	}{
		{node{distro: "ubuntu debian", uid: "0"}, "python", "", "run on the node: apt-get install -y python3"},
		{node{distro: "debian ", uid: "1000"}, "venv", "3.11", "run on the node: sudo apt-get install -y python3.11-venv"},
		{node{distro: "debian ", uid: "0"}, "torch", "", "run on the node: apt-get install -y python3-torch, or put torch in"},
		{node{distro: "rocky rhel centos fedora", uid: "0"}, "venv", "3.9", "run on the node: dnf install -y python3-pip"},
		{node{distro: "alpine ", uid: "0"}, "torch", "", "put torch in requirements.txt"},
		{node{kernel: "Darwin", uid: "501"}, "python", "", "xcode-select --install"},
		{node{kernel: "Darwin"}, "torch", "", "put torch in requirements.txt"},
		{node{distro: "plan9"}, "python", "", "package manager"},
		{node{}, "venv", "3.11", "Python 3.11"},
	} {
		if got := c.node.install(c.what, c.detail); !strings.Contains(got, c.want) {
			t.Errorf("%+v %s: %q, want %q", c.node, c.what, got, c.want)
		}
	}
}

func TestOnlySimpleRequirementsAreCheckedWithoutPip(t *testing.T) {
	py := interpreter{Packages: map[string]string{"torch": "1.13.0a0+git", "numpy": "1.24"}}
	for _, c := range []struct {
		content string
		want    bool
	}{
		{"torch", true},
		{"# comment\n\ntorch>=1.13 # why\nnumpy\n", true},
		{"--extra-index-url https://x/cpu\ntorch\n", true},
		{"torch >= 1.13.0.0", true},
		{"torch>=1.13.1", false},
		{"torch>=2", false},
		{"torch==1.13", false},
		{"torch[x]", false},
		{"absent", false},
		{"-e .", false},
		{"-r more.txt\ntorch", false},
		{"", false},
	} {
		if got := py.meets(c.content); got != c.want {
			t.Errorf("%q: %v", c.content, got)
		}
	}
}

func FuzzReadNode(f *testing.F) {
	f.Add([]byte("dlwb\thome\t/h\ndlwb\tpython\tpath\t/p\t{\"exe\":\"/p\",\"torch\":\"2\"}\ndlwb\tbad\twant\t/q\twhy\n"))
	f.Add([]byte("Welcome!\ndlwb\t\n\tdlwb\ndlwb\tpython\tvenv\t\t{"))
	f.Fuzz(func(t *testing.T, out []byte) {
		n := readNode(out)
		for _, i := range n.pythons {
			if i.Exe == "" {
				t.Errorf("an interpreter without a name: %+v", i)
			}
		}
		base, err := n.choose("")
		if err == nil && base.Torch == "" {
			for _, i := range n.pythons {
				if i.Torch != "" {
					t.Errorf("%v was chosen, %v has PyTorch", base, i)
				}
			}
		}
	})
}
