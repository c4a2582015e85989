package ecs

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	_ "embed" // the driver
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/pack"
	"github.com/dlwb/dlwb/internal/units"
)

//go:embed driver.py
var driverPy string

// entrypoint starts the driver, which lies in the package of code.
const entrypoint = "python3 -u .dlwb/driver.py"

// workMark stands for the directory of a replica that its machine makes.
const workMark = "dlwb-work.invalid"

// mostCode bounds the packed code, as Ray does: more is data.
const mostCode = 500 << 20

// order is what the driver reads.
type order struct {
	Run      string            `json:"run"`
	GPUs     int               `json:"gpus"` // of each replica
	Resource string            `json:"resource"`
	Nodes    []pack.Node       `json:"nodes"`
	Env      []string          `json:"env"` // K=V
	Links    map[string]string `json:"links"`
	Driver   bool              `json:"driver,omitempty"` // the one node is the job's own driver, beside the head
}

// packed is the code with what the driver needs, as Ray's working_dir. Each run has a
// package of its own: Ray unpacks two that are the same into one directory. output is the
// run's place in S3; empty: it has none.
func packed(j cloud.Job, output string, gpus int) (name string, body []byte, err error) {
	all := order{Run: j.Run, GPUs: gpus, Resource: workerResource, Env: append([]string{}, j.Env...), Links: j.Code.Links, Driver: j.Engine == "ray"}
	if output != "" {
		all.Env = append(all.Env, outputVar+"="+output)
		j.Procs = told(j.Procs, output)
	}
	if all.Driver { // what runs on the workers is Ray's doing
		j.Procs, j.Replicas = slices.DeleteFunc(slices.Clone(j.Procs), func(p cloud.JobProc) bool { return len(p.Ranks) == 0 }), 1
	}
	all.Nodes = pack.Nodes(j, workMark, func(word string) string { return word })
	o, err := json.Marshal(all)
	if err != nil {
		return "", nil, err
	}
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range [][2]string{{".dlwb/driver.py", driverPy}, {".dlwb/launch.py", pack.Launcher}, {".dlwb/job.json", string(o)}} {
		to, err := w.Create(f[0])
		if err == nil {
			_, err = io.WriteString(to, f[1])
		}
		if err != nil {
			return "", nil, err
		}
	}
	if err := addCode(w, &b, j.Code); err != nil {
		return "", nil, err
	}
	if err := w.Close(); err != nil {
		return "", nil, err
	}
	sum := sha256.Sum256(b.Bytes())
	return "_ray_pkg_" + hex.EncodeToString(sum[:8]) + ".zip", b.Bytes(), nil
}

func addCode(w *zip.Writer, b *bytes.Buffer, code cloud.Code) error {
	root, err := os.OpenRoot(code.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	sizes := map[string]int64{}
	for _, path := range code.Paths {
		if sizes[path], err = addFile(w, root, path); err != nil {
			return fmt.Errorf("pack %s: %w", path, err)
		}
		if b.Len() > mostCode {
			paths := slices.SortedFunc(maps.Keys(sizes), func(x, y string) int { return int(min(max(sizes[y]-sizes[x], -1), 1)) })
			return &plainError{fmt.Sprintf("the code is more than %s when packed; the largest file is %s (%s)", units.Bytes(mostCode), paths[0], units.Bytes(sizes[paths[0]])),
				"leave out what is no code (code.exclude, .dlwbignore); data belongs into S3"}
		}
	}
	for _, path := range code.Empty {
		if _, err := w.Create(path + "/"); err != nil {
			return fmt.Errorf("pack %s: %w", path, err)
		}
	}
	return nil
}

func addFile(w *zip.Writer, root *os.Root, path string) (int64, error) {
	f, err := root.Open(filepath.FromSlash(path))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.IsDir() {
		return 0, err
	}
	if !info.Mode().IsRegular() {
		return 0, errors.New("it is no regular file")
	}
	h := &zip.FileHeader{Name: path, Method: zip.Deflate}
	h.SetMode(0o644 | info.Mode()&0o111)
	to, err := w.CreateHeader(h)
	if err != nil {
		return 0, err
	}
	n, err := io.CopyN(to, f, info.Size()) // one that grows meanwhile is cut, one that shrinks is an error
	return n, err
}
