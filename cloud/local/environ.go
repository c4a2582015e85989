//go:build unix

package local

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/dlwb/dlwb/internal/pattern"
)

// passed are the variables of the caller that reach a node: what makes the
// programs of this machine work. A list of what may pass, and not of what may
// not, because nobody knows all names under which credentials go about.
var passed = []string{
	"PATH", "LANG", "LANGUAGE", "TZ", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
	"VIRTUAL_ENV", "PYTHONUTF8", "ROCM_PATH",
	"GOCOVERDIR", "GORACE", // of a dlwb that is built for its own tests
}

// passedPrefixes are the same for families of variables.
var passedPrefixes = []string{
	"LC_", "CUDA_", "NVIDIA_", "NCCL_", "GLOO_", "OMP_", "MKL_", "OPENBLAS_", "PIP_", "CONDA_", "PYENV_", "ASDF_", "MISE_", "NIX_",
}

// secretName matches names that hold credentials, also in a family that passes.
var secretName = pattern.New(`(?i)(^|_)(TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|KEY|AUTH|COOKIE)($|_)`)

// cleanEnv is the part of an environment that may reach a node.
func cleanEnv(env []string) []string {
	var clean []string
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		if passes(name) {
			clean = append(clean, entry)
		}
	}
	return clean
}

func passes(name string) bool {
	if secretName.MatchString(name) {
		return false
	}
	for _, n := range passed {
		if name == n {
			return true
		}
	}
	for _, prefix := range passedPrefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// callerEnv is what a node process is started with: what may pass of the
// caller's environment, and what of the caller's home is worth sharing. The
// node has a home of its own, where pip would download everything again and
// not know its own mirror.
func callerEnv() []string {
	env := cleanEnv(os.Environ())
	home, err := os.UserHomeDir()
	if err != nil {
		return env
	}
	caches, config := filepath.Join(home, ".cache"), filepath.Join(home, ".config")
	if runtime.GOOS == "darwin" {
		caches, config = filepath.Join(home, "Library", "Caches"), filepath.Join(home, "Library", "Application Support")
	}
	share := func(name string, candidates ...string) {
		if os.Getenv(name) != "" {
			return
		}
		for _, path := range candidates {
			if _, err := os.Stat(path); err == nil {
				env = append(env, name+"="+path)
				return
			}
		}
	}
	share("PIP_CACHE_DIR", filepath.Join(orEnv("XDG_CACHE_HOME", caches), "pip"))
	share("PIP_CONFIG_FILE", filepath.Join(orEnv("XDG_CONFIG_HOME", config), "pip", "pip.conf"),
		filepath.Join(home, ".config", "pip", "pip.conf"), filepath.Join(home, ".pip", "pip.conf"))
	return env
}

func orEnv(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}

// sharePackages lets the node's Python see what the user installed with
// "pip install --user". Only reading is shared: a path file in the node's own
// user directory names the real one, so that nothing on the node installs into
// the user's home.
func sharePackages(nodeHome string) error {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil //nolint:nilerr // nothing to share
	}
	var dirs []string
	for _, pattern := range []string{".local/lib/python3.*/site-packages", "Library/Python/3.*/lib/python/site-packages"} {
		found, _ := fs.Glob(os.DirFS(home), pattern)
		for _, dir := range found {
			dirs = append(dirs, filepath.Join(home, dir))
		}
	}
	for _, dir := range dirs {
		rel, err := filepath.Rel(home, dir)
		if err != nil {
			continue
		}
		own := filepath.Join(nodeHome, rel)
		if err := os.MkdirAll(own, 0o700); err != nil {
			return err
		}
		line := "import site; site.addsitedir(" + pythonString(dir) + ")\n"
		if err := os.WriteFile(filepath.Join(own, "dlwb_user.pth"), []byte(line), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func pythonString(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}

// commandEnv is the environment of everything that runs on a node.
func (n *node) commandEnv() []string {
	set := []string{
		"HOME=" + n.home, "USER=" + n.intent.User, "LOGNAME=" + n.intent.User, "SHELL=" + n.shell,
		"PATH=" + filepath.Join(n.dir, binDir) + ":" + orEnv("PATH", "/usr/local/bin:/usr/bin:/bin"),
		"TMPDIR=" + n.temp, "LANG=" + orEnv("LANG", "C.UTF-8"),
		cookieName + "=" + n.intent.ID, "DLWB_NODE=" + itoa(n.index),
		// A name and no path: whoever uses it need not quote it, and a
		// path with a space in it breaks nothing.
		"DLWB_SSH=" + peerSSHName,
	}
	if n.intent.SimulateGPUs > 0 {
		set = append(set, "DLWB_SIMULATED_GPUS="+itoa(n.intent.SimulateGPUs))
	}
	return mergeEnv(cleanEnv(os.Environ()), set)
}

// mergeEnv lets the later of two settings of one variable win. A shell given
// both would take either.
func mergeEnv(lists ...[]string) []string {
	at := map[string]int{}
	var merged []string
	for _, list := range lists {
		for _, entry := range list {
			name, _, _ := strings.Cut(entry, "=")
			if i, known := at[name]; known {
				merged[i] = entry
				continue
			}
			at[name] = len(merged)
			merged = append(merged, entry)
		}
	}
	return merged
}
