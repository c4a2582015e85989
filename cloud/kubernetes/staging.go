package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/cloud/pack"
	"github.com/dlwb/dlwb/internal/plainfile"
)

// staging is what came of a replica, below one directory: what is there, and what has
// just come and takes its place.
type staging struct {
	root     *os.Root
	old, now string
}

// newStaging begins a round, as the only one: what is left of one that was killed goes.
func newStaging(stage string) (s staging, err error) {
	base, number := filepath.Split(stage)
	prefix := "new-" + number + "-"
	there, _ := os.ReadDir(base)
	for _, e := range there {
		if strings.HasPrefix(e.Name(), prefix) {
			_ = os.RemoveAll(filepath.Join(base, e.Name()))
		}
	}
	now, err := os.MkdirTemp(base, prefix)
	if err != nil {
		return s, err
	}
	root, err := os.OpenRoot(base)
	if err != nil {
		return s, errors.Join(err, os.RemoveAll(now))
	}
	return staging{root: root, old: number, now: filepath.Base(now)}, nil
}

func (s staging) close() {
	_ = s.root.RemoveAll(s.now)
	_ = s.root.Close()
}

// listing is what keep.py lists: each file with its size, -1 for a link, and what it
// could not read, with the reason. At names the look: what has not changed since one is
// not sent again.
type listing struct {
	At    int64    `json:"at"`
	Files [][2]any `json:"files,omitempty"`
	Left  [][2]any `json:"left,omitempty"`
	// Ours: whose it is, and what could not be put here.
	Pod     string   `json:"pod,omitempty"`
	Skipped []string `json:"skipped,omitempty"`
	// Unfit are files that came and could not be put here.
	Unfit []string `json:"unfit,omitempty"`
}

// mostList is what a listing may have: names of some hundred thousand files. A pod writes
// it.
const mostList = 128 << 20

// list reads the listing of a directory.
func (s staging) list(dir string) (l listing, err error) {
	text, err := plainfile.ReadIn(s.root, path.Join(dir, keptList), mostList)
	if err == nil {
		err = json.Unmarshal(text, &l)
	}
	return l, err
}

// fill unpacks what a pod sends. What is the run's own goes below the name of its node.
func (s staging) fill(from io.Reader) (skipped []string, err error) {
	into, err := s.root.OpenRoot(s.now)
	if err != nil {
		return nil, err
	}
	defer into.Close()
	return pack.UnpackTar(from, into, s.placed)
}

// placed is where a file of the archive belongs.
func (s staging) placed(name string) string {
	if rest, own := strings.CutPrefix(name, keptOwn+"/"); own {
		return path.Join("node"+s.old, rest)
	}
	return name
}

// settle makes what has come whole by what was there already, and puts it in its place.
func (s staging) settle(pod string, skipped []string) error {
	l, err := s.list(s.now)
	switch {
	case errors.Is(err, fs.ErrNotExist): // an API server may cut a connection and call it well
		return errors.New("the end of it did not come")
	case err != nil:
		return fmt.Errorf("what the pod says of its files can't be read: %w", err)
	}
	before, _ := s.list(s.old) // none: all of it came
	whole := before.At == 0 || before.Pod != pod
	for _, f := range l.Files {
		switch name := fmt.Sprint(f[0]); {
		case s.came(name):
		case whole:
			l.Unfit = append(l.Unfit, name) // fill has said why
		case slices.Contains(before.Unfit, name):
			l.Unfit = append(l.Unfit, name)
			if !slices.ContainsFunc(skipped, func(text string) bool { return strings.HasPrefix(string([]rune(text)), name+": ") }) {
				skipped = append(skipped, name+": it can't be put here")
			}
		default:
			if err := s.carry(f); err != nil {
				return err
			}
		}
	}
	for _, one := range l.Left {
		skipped = append(skipped, fmt.Sprintf("%v: %v", one[0], one[1]))
	}
	l.Pod, l.Files, l.Left, l.Skipped = pod, nil, nil, skipped
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	if err := s.root.WriteFile(path.Join(s.now, keptList), text, 0o600); err != nil {
		return err
	}
	return s.replace()
}

// replace puts what has come in its place. To remove what was there takes its time, in
// which somebody may end dlwb: that comes last.
func (s staging) replace() error {
	was := s.now + ".was"
	if err := s.root.Rename(s.old, was); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := s.root.Rename(s.now, s.old); err != nil {
		return errors.Join(err, s.root.Rename(was, s.old))
	}
	return s.root.RemoveAll(was)
}

// came reports whether a file is among what has just come.
func (s staging) came(name string) bool {
	_, err := s.root.Lstat(path.Join(s.now, s.placed(name)))
	return err == nil
}

// carry takes over a file that has not changed since the look before.
func (s staging) carry(f [2]any) error {
	name, is := f[0].(string)
	if !is || !fs.ValidPath(name) || strings.ContainsRune(name, '\\') {
		return nil
	}
	name = s.placed(name)
	to := path.Join(s.now, name)
	if err := s.root.MkdirAll(path.Dir(to), 0o755); err != nil {
		return err
	}
	err := s.copy(path.Join(s.old, name), to, f[1])
	if err != nil {
		_ = s.root.Remove(path.Join(s.old, keptList)) // all of it next time
		return fmt.Errorf("%s did not come, and is not here: %w", name, err)
	}
	return nil
}

// copy gives a file that is here a second name; a file system that can't do that gets
// it moved.
func (s staging) copy(from, to string, size any) error {
	info, err := s.root.Lstat(from)
	if err != nil {
		return err
	}
	if n, is := size.(float64); is && n >= 0 && info.Size() != int64(n) {
		return errors.New("it is of another size")
	}
	if err := s.root.Link(from, to); err == nil {
		return nil
	}
	return s.root.Rename(from, to)
}

// copyTree writes what is below a directory into another one; skipped is what could not
// be put there in the first place. That there is no such directory is no error.
func copyTree(dir string, into *os.Root) (skipped []string, err error) {
	from, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer from.Close()
	if l, err := (staging{root: from}).list("."); err == nil {
		skipped = l.Skipped
	}
	return skipped, fs.WalkDir(from.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || name == keptList {
			return err
		}
		if err := into.MkdirAll(path.Dir(name), 0o755); err != nil {
			return err
		}
		if e.Type()&fs.ModeSymlink == 0 {
			return copyFile(from, into, name)
		}
		target, err := from.Readlink(name)
		if err != nil {
			return err
		}
		return into.Symlink(target, name)
	})
}

func copyFile(from, into *os.Root, name string) error {
	in, err := from.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := into.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, info.Mode().Perm())
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return errors.Join(err, out.Close(), into.Remove(name))
	}
	return errors.Join(out.Close(), into.Chtimes(name, info.ModTime(), info.ModTime()))
}
