package agentbin

// Linux and what uname calls its processors, as Go calls them.
var processors = map[string]string{
	"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64",
}

// Machine gives Go's names for what uname -s and uname -m say.
func Machine(system, processor string) (os, arch string) {
	os, arch = system, processor
	if system == "Linux" {
		os = "linux"
	}
	if known, ok := processors[processor]; ok {
		arch = known
	}
	return os, arch
}

// Names are the file names of all agents that this dlwb has.
func Names() []string {
	var names []string
	for _, arch := range []string{"amd64", "arm64"} {
		if a, ok := summed("linux-" + arch); ok {
			names = append(names, a.Name)
		} else if a, err := For("linux", arch); err == nil {
			names = append(names, a.Name)
		}
	}
	return names
}
