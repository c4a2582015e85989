//go:build unix

package local

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/about"
	"github.com/dlwb/dlwb/cloud/local/options"
	"github.com/dlwb/dlwb/internal/pattern"
	"github.com/dlwb/dlwb/internal/units"
)

// Names in the directory of a cluster.
const (
	intentFile = "intent.json"
	keyFile    = "key"
	tempSuffix = ".tmp"
)

// intent is written before anything else of a cluster exists and removed after
// everything else is gone. Whatever happens in between, it tells what to look
// for.
type intent struct {
	Name string `json:"name"`
	// ID is the cookie: random, so that nothing else can carry it by chance.
	ID           string    `json:"id"`
	Count        int       `json:"count"`
	SimulateGPUs int       `json:"simulate_gpus,omitempty"`
	User         string    `json:"user"`
	CreatedAt    time.Time `json:"created_at"`
	// Temp is the directory that holds the nodes' own temporary directories.
	// They can't be in the cluster's directory: what runs on a node makes
	// sockets there, whose path may not be longer than about 100 bytes.
	Temp string `json:"temp"`
	// Ending is set when the cluster is being taken down. It then never
	// comes up again, also when taking it down was interrupted.
	Ending bool `json:"ending,omitempty"`
}

// unlike says how a cluster that exists differs from what is asked for.
func (in intent) unlike(spec cloud.Spec) string {
	text := fmt.Sprintf("cluster %s exists with %s, and %d are asked for", spec.Name, units.Count(in.Count, "node"), spec.Count)
	if in.Count == spec.Count {
		text = fmt.Sprintf("cluster %s exists with %s on each node that are simulated, and %d are asked for", spec.Name, units.Count(in.SimulateGPUs, "GPU"), simulated(spec))
	}
	return text
}

// newIntent plans a cluster.
func newIntent(spec cloud.Spec) (intent, error) {
	id := make([]byte, 16)
	if _, err := rand.Read(id); err != nil {
		return intent{}, fmt.Errorf("make an id for cluster %s: %w", spec.Name, err)
	}
	temp := os.TempDir()
	if real, err := filepath.EvalSymlinks(temp); err == nil {
		temp = real
	}
	return intent{
		Name: spec.Name, ID: hex.EncodeToString(id), Count: spec.Count, SimulateGPUs: simulated(spec),
		User: cmp.Or(about.Own[options.Machines](spec.Own).User, userName()), CreatedAt: time.Now(), Temp: temp,
	}, nil
}

// userName is who runs this. A container may have a user without a name.
func userName() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "uid" + strconv.Itoa(os.Getuid())
}

// tempDir is the temporary directory of one node.
func (in intent) tempDir(i int) string {
	return filepath.Join(in.Temp, fmt.Sprintf("dlwb-%s-%d", in.ID[:12], i))
}

// readIntent reads the intent in the directory of a cluster.
func readIntent(dir string) (intent, error) {
	b, err := os.ReadFile(filepath.Join(dir, intentFile))
	if err != nil {
		return intent{}, err
	}
	var in intent
	if err := json.Unmarshal(b, &in); err != nil {
		return intent{}, fmt.Errorf("read %s: %w", filepath.Join(dir, intentFile), err)
	}
	if len(in.ID) < 32 || in.Name != filepath.Base(dir) {
		return intent{}, fmt.Errorf("read %s: it does not describe the cluster %s", filepath.Join(dir, intentFile), filepath.Base(dir))
	}
	return in, nil
}

// write commits the intent to the disk.
func (in intent) write(dir string) error {
	return writeJSON(filepath.Join(dir, intentFile), in)
}

// clusterDir is where a cluster lives. The name becomes a path and a prompt, so
// it is checked here, where every way passes.
func (p *Provider) clusterDir(name string) (string, error) {
	if !namePattern.MatchString(name) {
		return "", fmt.Errorf("cluster name %q: use a letter or digit, then up to 62 letters, digits, '-', '_' or '.'", name)
	}
	root, err := filepath.Abs(p.dir)
	if err != nil {
		return "", fmt.Errorf("find the directory of cluster %s: %w", name, err)
	}
	// A name in several forms (a link on the way) would make paths that do
	// not compare equal.
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	return filepath.Join(root, name), nil
}

var namePattern = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// nodeDir is the directory of node i, below that of its cluster.
func nodeDir(dir string, i int) string { return filepath.Join(dir, "node"+strconv.Itoa(i)) }

// nodeIndex is the number in the name of a node's directory.
func nodeIndex(dir string) (int, error) {
	number, ok := strings.CutPrefix(filepath.Base(dir), "node")
	i, err := strconv.Atoi(number)
	if !ok || err != nil || i < 0 {
		return 0, fmt.Errorf("%s is not the directory of a node", dir)
	}
	return i, nil
}

// serving is what a node says of itself once it listens.
type serving struct {
	PID   int    `json:"pid"`
	Start string `json:"start"`
	Port  int    `json:"port"`
}

const servingFile = "serving.json"

func readServing(node string) (serving, error) {
	var s serving
	b, err := os.ReadFile(filepath.Join(node, servingFile))
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(b, &s)
}

// alive reports whether the very process that wrote this still runs.
func (s serving) alive() bool {
	if living(s.PID, s.Start) {
		return true
	}
	if p, err := lookup(s.PID); err == nil && p.dead && p.ppid == os.Getpid() {
		// Nobody waits for a node: one that this process started would
		// stay in the table as long as dlwb runs.
		var status syscall.WaitStatus
		_, _ = syscall.Wait4(s.PID, &status, syscall.WNOHANG, nil)
	}
	return false
}

func writeJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return writeFile(path, append(b, '\n'), 0o600)
}

// writeFile writes a file whole or not at all, also when the machine stops.
func writeFile(path string, content []byte, mode os.FileMode) error {
	temp := path + tempSuffix
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(temp, path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// makeScript writes a small program, unless it is already there as it should be.
func makeScript(path, text string) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, []byte(text)) {
		return nil
	}
	return writeFile(path, []byte(text), 0o755)
}

// errNoCluster is under every answer about a cluster that does not exist.
var errNoCluster = fs.ErrNotExist

// lockDir locks the directory of a cluster against another Up or Down, in this
// or another process. The directory itself is the lock, so that no file is left
// when it is gone. With make it is made when missing.
func lockDir(dir string, make bool) (unlock func(), err error) {
	for {
		if make {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return nil, fmt.Errorf("make the directory of the cluster: %w", err)
			}
		}
		if fi, err := os.Lstat(dir); err != nil {
			return nil, err
		} else if !fi.IsDir() {
			return nil, fmt.Errorf("%s is not a directory: a cluster keeps its state there; move it away", dir)
		}
		f, err := os.Open(dir)
		if err != nil {
			return nil, fmt.Errorf("lock the cluster: %w", err)
		}
		if err := flock(f); err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("lock %s: %w", dir, err)
		}
		// Who had the lock before may have removed the directory.
		held, err1 := f.Stat()
		there, err2 := os.Stat(dir)
		if err1 == nil && err2 == nil && os.SameFile(held, there) {
			return func() { _ = f.Close() }, nil
		}
		_ = f.Close()
	}
}

// flock waits for the lock; a signal does not end the wait.
func flock(f *os.File) error {
	for {
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
