package remote

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/units"
)

// stagePrefix begins the name of the directory in dest for unfinished files.
const stagePrefix = ".dlwb-pull-"

// staleStage is how old the leftovers of a crash must be to be removed: younger
// ones may belong to another dlwb.
const staleStage = 24 * time.Hour

// tarTail bounds what may follow the end of an archive.
const tarTail = 1 << 20

// take fetches what is wanted.
func (p *puller) take(ctx context.Context) error {
	wanted, limit := p.choose()
	if len(wanted) == 0 {
		return limit
	}
	p.clearStale()
	p.stage = stagePrefix + randomWord()
	if err := p.root.Mkdir(p.stage, 0o700); err != nil {
		return err
	}
	defer func() { _ = p.root.RemoveAll(p.stage) }()
	var rest []pullItem
	for _, item := range wanted {
		if item.kind != kindFile || item.size < p.large || !p.hasTar {
			rest = append(rest, item)
		} else if err := p.fetchLarge(ctx, item); err != nil {
			return err
		}
	}
	wanted = rest
	// GNU tar takes a backslash in a name that it is given for an escape; the
	// others do not.
	plain := func(item pullItem) bool { return !p.hasTar || strings.Contains(item.path, `\`) }
	for _, item := range wanted {
		if plain(item) {
			if err := p.fetchPlain(ctx, item); err != nil {
				return err
			}
		}
	}
	for _, part := range cutItems(slices.DeleteFunc(slices.Clone(wanted), func(item pullItem) bool { return !plain(item) })) {
		if err := p.verify(ctx, part); err != nil {
			return err
		}
	}
	var again []pullItem
	for _, part := range cutItems(slices.DeleteFunc(wanted, plain)) {
		links, err := p.fetch(ctx, part)
		if err != nil {
			return err
		}
		again = append(again, links...)
		if err := p.verify(ctx, part); err != nil {
			return err
		}
	}
	// In an archive, the second name of a file has no content; alone it has.
	for _, item := range again {
		links, err := p.fetch(ctx, []pullItem{item})
		if err != nil {
			return err
		}
		if len(links) > 0 {
			p.skip(item.path, "the node sends only the name of another file for it")
		}
	}
	return limit
}

// clearStale removes what a Pull that was killed left behind.
func (p *puller) clearStale() {
	entries, err := fs.ReadDir(p.root.FS(), ".")
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && strings.HasPrefix(e.Name(), stagePrefix) && time.Since(info.ModTime()) > staleStage {
			_ = p.root.RemoveAll(e.Name())
		}
	}
}

// cutItems makes parts whose names fit on a command line.
func cutItems(items []pullItem) (parts [][]pullItem) {
	for len(items) > 0 {
		n, length := 0, 0
		for n < len(items) && (n == 0 || length < lineMost) {
			length += len(Quote("./"+items[n].path)) + 1
			n++
		}
		parts, items = append(parts, items[:n]), items[n:]
	}
	return parts
}

// fetch gets some files and links. Those that came as second names of others
// are given back.
func (p *puller) fetch(ctx context.Context, items []pullItem) (again []pullItem, err error) {
	args := []string{"sh", "-c", `cd "$HOME" && cd "$1" && shift && exec tar -cf - "$@"`, "dlwb", p.dir}
	wanted := map[string]pullItem{}
	for _, item := range items {
		args = append(args, "./"+item.path)
		wanted[item.path] = item
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, w := io.Pipe()
	type ended struct {
		res Result
		err error
	}
	done := make(chan ended, 1)
	go func() {
		res, err := p.node.Exec(ctx, Cmd{Line: Quote(args...), Stdout: w, Quiet: transferLimit})
		_ = w.Close()
		done <- ended{res, err}
	}()
	again, err = p.unpack(r, wanted)
	if err != nil {
		cancel()
	}
	_ = r.CloseWithError(io.ErrClosedPipe)
	end := <-done
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) && end.err != nil:
		return nil, end.err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("the stream broke off: %s", p.said(end.res))
	case err != nil:
		return nil, err
	case end.err != nil:
		return nil, end.err
	}
	for _, item := range items {
		if _, left := wanted[item.path]; left {
			p.skip(item.path, "not sent: "+p.said(end.res))
		}
	}
	return again, nil
}

// said is what a command on the node gave as its reason.
func (p *puller) said(res Result) string {
	if text := lastWords(res.Stderr); text != "" {
		return text
	}
	return fmt.Sprintf("tar ended with exit code %d and no word", res.ExitCode)
}

// unpack reads an archive that a node made, takes what is wanted out of it and
// off the list, and gives back what came as another name of an earlier file.
func (p *puller) unpack(r io.Reader, wanted map[string]pullItem) (again []pullItem, err error) {
	archive := tar.NewReader(r)
	for {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			if n, _ := io.CopyN(io.Discard, r, tarTail); n == tarTail {
				return nil, errors.New("the node sends on after the end of the archive")
			}
			return again, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the node's archive: %w", err)
		}
		name := strings.TrimPrefix(head.Name, "./")
		item, ok := wanted[name]
		if !ok {
			p.skip(name, "it was not asked for")
			continue
		}
		delete(wanted, name)
		switch head.Typeflag {
		case tar.TypeReg:
			item.size, item.mtime = head.Size, head.ModTime.Unix()
			err = p.store(item, func(w io.Writer) error { _, err := io.Copy(w, archive); return err })
		case tar.TypeSymlink:
			err = p.storeLink(item.path, head.Linkname)
		case tar.TypeLink:
			again = append(again, item)
		default:
			p.skip(name, fmt.Sprintf("it comes as something else (type %q)", head.Typeflag))
		}
		if err != nil {
			return nil, err
		}
	}
}

// fetchPlain gets one file or link without tar.
func (p *puller) fetchPlain(ctx context.Context, item pullItem) error {
	tool := "cat"
	if item.kind == kindLink {
		tool = "readlink"
	}
	script := `cd "$HOME" && cd "$1" && exec ` + tool + ` "$2"`
	cmd := Cmd{Line: Quote("sh", "-c", script, "dlwb", p.dir, "./"+item.path), Quiet: transferLimit}
	fill := func(w io.Writer) error {
		res, err := execTo(ctx, p.node, cmd, w)
		if err == nil && res.ExitCode != 0 {
			err = &unsentError{p.said(res)}
		}
		return err
	}
	var err error
	if item.kind == kindLink {
		var target strings.Builder
		if err = fill(&cappedWriter{to: &target, left: lineMost}); err == nil {
			err = p.storeLink(item.path, strings.TrimSuffix(target.String(), "\n"))
		}
	} else {
		err = p.store(item, fill)
	}
	if unsent := new(unsentError); errors.As(err, &unsent) {
		p.skip(item.path, "not sent: "+unsent.why)
		return nil
	}
	return err
}

// unsentError is a node's reason not to send one file.
type unsentError struct{ why string }

func (e *unsentError) Error() string { return e.why }

// store writes a file beside its place and moves it there when it is whole.
func (p *puller) store(item pullItem, fill func(io.Writer) error) error {
	if p.left.MaxFiles == 0 {
		return p.limit(item.path, "more than "+count(p.lim.MaxFiles, "file"))
	}
	if item.size > p.left.MaxBytes {
		return p.limit(item.path, "more than "+units.Bytes(p.lim.MaxBytes))
	}
	p.serial++
	temp := fmt.Sprintf("%s/%d", p.stage, p.serial)
	written, err := p.write(temp, item, fill)
	if err != nil {
		_ = p.root.Remove(temp)
		return err
	}
	mtime := time.Unix(item.mtime, 0)
	if p.clock-item.mtime < 2 {
		// It may change again within the same second: with a time that no file
		// there has, the next Pull fetches it again.
		mtime = mtime.Add(time.Nanosecond)
	}
	if err := p.root.Chtimes(temp, mtime, mtime); err != nil {
		return err
	}
	if !p.place(temp, item.path) {
		return nil
	}
	p.left.MaxFiles--
	p.left.MaxBytes -= written
	p.res.Files++
	p.res.Bytes += written
	return nil
}

func (p *puller) write(temp string, item pullItem, fill func(io.Writer) error) (int64, error) {
	f, err := p.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, item.mode)
	if err != nil {
		return 0, err
	}
	w := &cappedWriter{to: f, left: p.left.MaxBytes}
	sum := sha256.New()
	w.to = io.MultiWriter(f, sum)
	if err = fill(w); err == nil {
		p.got[item.path] = hex.EncodeToString(sum.Sum(nil))
	}
	if w.over {
		err = p.limit(item.path, "more than "+units.Bytes(p.lim.MaxBytes))
	}
	return p.left.MaxBytes - w.left, errors.Join(err, f.Close())
}

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
	if dir == "." {
		return nil
	}
	for end := 0; end < len(dir); end++ {
		if next := strings.IndexByte(dir[end:], '/'); next >= 0 {
			end += next
		} else {
			end = len(dir)
		}
		if info, err := p.root.Lstat(dir[:end]); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return fmt.Errorf("%s is a link", nameText(dir[:end]))
		}
	}
	return p.root.MkdirAll(dir, 0o755)
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
	p.serial++
	temp := fmt.Sprintf("%s/%d", p.stage, p.serial)
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
