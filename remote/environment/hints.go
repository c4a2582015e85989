package environment

import (
	"fmt"
	"strings"
)

// installer is how one family of systems installs what is missing.
type installer struct {
	command string // in front of the packages
	python  string
	venv    string // what -m venv needs; %s is like 3.11
	torch   string // empty where there is no package, only pip
}

// installers by the ID or ID_LIKE of /etc/os-release.
var installers = map[string]installer{
	"debian": {"apt-get install -y", "python3", "python%s-venv", "python3-torch"},
	"fedora": {"dnf install -y", "python3", "python3-pip", "python3-torch"},
	"rhel":   {"dnf install -y", "python3", "python3-pip", ""},
	"amzn":   {"dnf install -y", "python3", "python3-pip", ""},
	"suse":   {"zypper install -y", "python3", "python3-pip", ""},
	"alpine": {"apk add", "python3", "py3-pip", ""},
	"arch":   {"pacman -S --noconfirm", "python", "python-pip", "python-pytorch"},
}

func (n node) installer() (installer, bool) {
	for _, id := range strings.Fields(n.distro) {
		if i, ok := installers[id]; ok {
			return i, true
		}
	}
	return installer{}, false
}

// install says how to get a thing on this node: "python", "venv" or "torch".
// detail is the version of Python for venv.
func (n node) install(what, detail string) string {
	i, known := n.installer()
	line := i.command + " "
	if n.uid != "0" {
		line = "sudo " + line
	}
	switch {
	case n.kernel == "Darwin":
		return map[string]string{
			"python": "run on the node: xcode-select --install",
			"venv":   "run on the node: brew install python",
			"torch":  viaRequirements,
		}[what]
	case what == "torch" && i.torch != "":
		return "run on the node: " + line + i.torch + ", or " + viaRequirements
	case what == "torch":
		return viaRequirements
	case !known && what == "python":
		return "install Python 3.8 or newer with the node's package manager"
	case !known:
		return "install the venv and ensurepip modules of Python " + detail + " with the node's package manager"
	case what == "python":
		return "run on the node: " + line + i.python
	case strings.Contains(i.venv, "%s"):
		return "run on the node: " + line + fmt.Sprintf(i.venv, detail)
	}
	return "run on the node: " + line + i.venv
}

// installVenv says how to complete an interpreter. The system's packages only
// help the system's own.
func (n node) installVenv(py interpreter) string {
	if !strings.HasPrefix(py.Exe, "/usr/bin/") && n.kernel != "Darwin" {
		n.distro = ""
	}
	return n.install("venv", minor(py.Version))
}

const viaRequirements = "put torch in requirements.txt and write environment: {venv: requirements.txt}"
