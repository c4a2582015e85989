package transfer

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/dlwb/dlwb/remote/wire"
)

// place renames a finished file. What is in the way here stays.
func (p *puller) place(temp, name string) bool {
	at, err := p.placeFor(name)
	if err == nil {
		err = p.makeDir(path.Dir(at))
	}
	if err == nil {
		err = p.root.Rename(temp, at)
	}
	if err != nil {
		_ = p.root.Remove(temp)
		p.skip(name, "here: "+err.Error())
	} else {
		p.remember(name, at)
	}
	return err == nil
}

// makeDir makes a directory. A link on the way is not followed, even when it
// points inside: it could lead to what was not asked for.
func (p *puller) makeDir(dir string) error {
	if dir == "." || dir == p.made {
		return nil
	}
	for end := 0; end < len(dir); end++ {
		if next := strings.IndexByte(dir[end:], '/'); next >= 0 {
			end += next
		} else {
			end = len(dir)
		}
		info, err := p.root.Lstat(dir[:end])
		switch {
		case err == nil && info.Mode()&fs.ModeSymlink != 0:
			return fmt.Errorf("%s is a link", nameText(dir[:end]))
		case errors.Is(err, fs.ErrNotExist):
			_ = p.root.Mkdir(dir[:end], p.dirMode(dir[:end])) // its error is met below
		}
	}
	err := p.root.MkdirAll(dir, 0o755)
	if err == nil {
		p.made = dir
	}
	return err
}

const (
	// modesMost bounds the memory for modes of directories: 40,000 with long names.
	modesMost = 4 << 20
	// modeCosts is what one takes besides its name.
	modeCosts = 48
)

// dirModes are the modes of directories there that others may not use as they may use
// most of them.
type dirModes struct {
	of    map[string]fs.FileMode
	bytes int
}

func (m *dirModes) note(t wire.Thing) {
	if perm := permissions(t); perm&0o077 != 0o055 && m.bytes < modesMost {
		if m.of == nil {
			m.of = map[string]fs.FileMode{}
		}
		m.of[t.Name] = perm
		m.bytes += len(t.Name) + modeCosts
	}
}

// dirMode is the mode of a directory that is made here. Where there were too many to be
// noted, one that was not is the user's alone.
func (p *puller) dirMode(name string) fs.FileMode {
	mode, noted := p.modes.of[name]
	switch {
	case noted:
		return mode | dirMay
	case p.modes.bytes >= modesMost:
		return dirMay
	}
	return 0o755
}

// storeLink makes a link, if it stays inside.
func (p *puller) storeLink(name, target string) error {
	if !safeLink(name, target) {
		p.skip(name, "a link that points out, to "+nameText(target))
		return nil
	}
	if have, err := p.root.Readlink(p.whereIs(name)); err == nil && have == target {
		p.remember(name, p.whereIs(name))
		p.res.Unchanged++
		return nil
	}
	if p.left.MaxFiles == 0 {
		return p.limit(name, "more than "+count(p.lim.MaxFiles, "file"))
	}
	temp := p.partOf(wire.Thing{})
	if err := p.root.Symlink(target, temp); err != nil {
		p.skip(name, "here: "+err.Error())
		return nil
	}
	if p.place(temp, name) {
		p.left.MaxFiles--
		p.res.Files++
	}
	return nil
}

// safeLink reports whether a link points inside, whatever the names on its way
// are. A ".." is only allowed in front: behind a name, which may itself be a
// link, nobody knows where it leads.
func safeLink(name, target string) bool {
	if !pointsInside(name, target) || strings.ContainsAny(target, `\`) {
		return false
	}
	rest := target
	for {
		after, ok := strings.CutPrefix(rest, "../")
		if !ok {
			break
		}
		rest = after
	}
	return rest == "" || rest == "." || rest == ".." || localPath(strings.TrimSuffix(rest, "/"))
}

// whereIs is where in dest a file of the node is, or would be.
func (p *puller) whereIs(name string) string {
	if r, ok := p.rules.Placed[name]; ok && p.asLeft(r) {
		return r.As
	}
	return name
}

// asLeft reports whether what a Pull placed is still there as it was left.
func (p *puller) asLeft(r Placed) bool {
	info, err := p.root.Lstat(r.As)
	return err == nil && info.Size() == r.Size && info.ModTime().Equal(r.MTime)
}

// remember notes what is now in dest for a file of the node.
func (p *puller) remember(name, at string) {
	if p.rules.Placed == nil {
		return
	}
	if info, err := p.root.Lstat(at); err == nil {
		p.rules.Placed[name] = Placed{As: at, Size: info.Size(), MTime: info.ModTime()}
	}
}

// mostNames is how many names are tried for a file whose own is taken.
const mostNames = 1000

// placeFor is where in dest a file that has come belongs. What somebody else
// put there, or changed, is not replaced.
func (p *puller) placeFor(name string) (string, error) {
	at := p.whereIs(name)
	r, ours := p.rules.Placed[name]
	if p.rules.Placed == nil || ours && r.As == at && p.asLeft(r) {
		return at, nil
	}
	for n := 1; n < mostNames; n++ {
		if _, err := p.root.Lstat(at); errors.Is(err, fs.ErrNotExist) {
			if at != name {
				p.res.Moved = append(p.res.Moved, nameText(name)+": there is another file of that name; it is "+nameText(at))
			}
			return at, nil
		}
		at = markedName(name, p.rules.Mark, n)
	}
	return "", fmt.Errorf("%d other files of its name are there", mostNames)
}

// markedName is another name for a file: model.pt becomes model.MARK.pt, then
// model.MARK-2.pt.
func markedName(name, mark string, n int) string {
	dir, base := path.Split(name)
	ext := path.Ext(base)
	if ext == base {
		ext = ""
	}
	if n > 1 {
		mark = fmt.Sprintf("%s-%d", mark, n)
	}
	return dir + strings.TrimSuffix(base, ext) + "." + mark + ext
}
