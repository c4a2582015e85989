package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// sumScript prints the SHA-256 of files, in a line each that begins with it.
const sumScript = `cd "$HOME" && cd "$1" && shift || exit 1
if command -v sha256sum >/dev/null 2>&1; then exec sha256sum -- "$@"; fi
exec shasum -a 256 -- "$@"`

// sums asks the node for the checksums of files; nil: it can't tell.
func (p *puller) sums(ctx context.Context, items []pullItem) []string {
	args := []string{"sh", "-c", sumScript, "dlwb", p.dir}
	for _, item := range items {
		args = append(args, "./"+item.path)
	}
	text, res, err := execText(ctx, p.node, Cmd{Line: Quote(args...), Quiet: hashLimit}, int64(len(items))*(lineMost/8))
	if err != nil || res.ExitCode != 0 {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) != len(items) {
		return nil // a name with a line break, where that is not escaped
	}
	for i, line := range lines {
		sum, _, _ := strings.Cut(strings.TrimPrefix(line, `\`), " ")
		if raw, err := hex.DecodeString(sum); err != nil || len(raw) != sha256.Size {
			return nil
		}
		lines[i] = sum
	}
	return lines
}

// verify holds what was fetched against the node's own checksums. A file that
// differs was changed meanwhile, or did not come as it is: it is fetched again.
func (p *puller) verify(ctx context.Context, items []pullItem) error {
	var fetched []pullItem
	for _, item := range items {
		if p.got[item.path] != "" {
			fetched = append(fetched, item)
		}
	}
	if len(fetched) == 0 {
		return nil
	}
	for i, sum := range p.sums(ctx, fetched) {
		item := fetched[i]
		if sum == p.got[item.path] {
			continue
		}
		p.takeBack(item)
		if err := p.fetchPlain(ctx, item); err != nil {
			return err
		}
		if now := p.sums(ctx, []pullItem{item}); len(now) == 1 && now[0] != p.got[item.path] {
			p.skip(item.path, "it changes while it is fetched; what came of it is here")
		}
	}
	return nil
}

// takeBack makes room in the limits for a file that is fetched again.
func (p *puller) takeBack(item pullItem) {
	info, err := p.root.Lstat(p.whereIs(item.path))
	if err != nil {
		return
	}
	p.left.MaxFiles++
	p.left.MaxBytes += info.Size()
	p.res.Files--
	p.res.Bytes -= info.Size()
}

// fetchLarge gets a large file so that what came before a connection was lost
// need not come again, and takes it only when it has the node's checksum.
func (p *puller) fetchLarge(ctx context.Context, item pullItem) error {
	part := stagePrefix + shortHash(fmt.Sprintf("%q %d %d", item.path, item.size, item.mtime))
	for try := 1; ; try++ {
		sum, err := p.goOn(ctx, part, item)
		if err != nil {
			if unsent := new(unsentError); errors.As(err, &unsent) {
				p.skip(item.path, "not sent: "+unsent.why)
				return nil
			}
			return err
		}
		if told := p.sums(ctx, []pullItem{item}); len(told) != 1 || told[0] == sum {
			return p.takeLarge(part, item)
		}
		if err := p.root.Remove(part); err != nil {
			return err
		}
		if try == 2 {
			p.skip(item.path, "it changes while it is fetched")
			return nil
		}
	}
}

// goOn fetches what is missing of a large file, and gives the checksum of all.
func (p *puller) goOn(ctx context.Context, part string, item pullItem) (string, error) {
	if info, err := p.root.Lstat(part); err == nil && (!info.Mode().IsRegular() || info.Size() > item.size) {
		if err := p.root.Remove(part); err != nil {
			return "", err
		}
	}
	f, err := p.root.OpenFile(part, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	have, err := io.Copy(sum, f)
	if err == nil && have < item.size {
		script := `cd "$HOME" && cd "$1" && tail -c "+$3" "$2" | head -c "$4"`
		line := Quote("sh", "-c", script, "dlwb", p.dir, "./"+item.path, strconv.FormatInt(have+1, 10), strconv.FormatInt(item.size-have, 10))
		to := &cappedWriter{to: io.MultiWriter(f, sum), left: item.size - have}
		var res Result
		if res, err = execTo(ctx, p.node, Cmd{Line: line, Quiet: hashLimit}, to); err == nil && to.left > 0 {
			err = &unsentError{"it ended early: " + p.said(res)}
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), errors.Join(err, f.Close())
}

// takeLarge puts a large file that is whole in its place.
func (p *puller) takeLarge(part string, item pullItem) error {
	mtime := time.Unix(item.mtime, 0)
	if p.clock-item.mtime < 2 {
		mtime = mtime.Add(time.Nanosecond) // see store
	}
	if err := errors.Join(p.root.Chmod(part, item.mode), p.root.Chtimes(part, mtime, mtime)); err != nil {
		return err
	}
	if p.place(part, item.path) {
		p.left.MaxFiles--
		p.left.MaxBytes -= item.size
		p.res.Files++
		p.res.Bytes += item.size
	}
	return nil
}
