package transfer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// Gather puts what fill writes into a directory in its place in dest, by the rules of a
// Pull: what somebody else has put there stays. What fill has written when it fails is
// kept. Names are those below the directory; rules.Own is not asked.
func Gather(dest string, rules PullRules, fill func(into *os.Root) error) (res PullResult, err error) {
	began := time.Now()
	p := &puller{dest: dest, rules: rules, res: &res, paths: []string{"."}}
	if err := p.open(); err != nil {
		return res, err
	}
	defer p.close()
	if err := p.openStage(); err != nil {
		return res, err
	}
	stage, err := p.root.OpenRoot(p.stage)
	if err != nil {
		return res, err
	}
	defer stage.Close()
	filled := fill(stage)
	p.left = PullLimits{MaxFiles: pullFiles, MaxBytes: pullBytes} // fill has kept to bounds of its own
	err = fs.WalkDir(stage.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return p.gather(name, d.Type())
	})
	res.Duration = time.Since(began)
	return res, errors.Join(filled, err)
}

// gather puts one file of the stage in its place.
func (p *puller) gather(name string, kind fs.FileMode) error {
	at := p.stage + "/" + name
	switch why := p.refusal(name); {
	case why != "":
		p.skip(name, why)
		return nil
	case kind&fs.ModeSymlink != 0:
		target, err := p.root.Readlink(at)
		if err != nil {
			return err
		}
		return p.storeLink(name, target)
	case !kind.IsRegular():
		p.skip(name, "no file")
		return nil
	}
	info, err := p.root.Lstat(at)
	if err != nil {
		return err
	}
	if p.same(at, p.whereIs(name)) {
		p.remember(name, p.whereIs(name))
		p.res.Unchanged++
		return nil
	}
	if p.place(at, name) {
		p.res.Files++
		p.res.Bytes += info.Size()
	}
	return nil
}

// same reports whether two files have the same content.
func (p *puller) same(one, other string) bool {
	a, b := p.regular(one), p.regular(other)
	if a == nil || b == nil {
		return false
	}
	defer a.Close()
	defer b.Close()
	return sameContent(a, b)
}

// regular opens a file that is one; nil: it is none.
func (p *puller) regular(name string) *os.File {
	info, err := p.root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := p.root.Open(name)
	if err != nil {
		return nil
	}
	return f
}

func sameContent(a, b io.Reader) bool {
	one, other := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, err := io.ReadFull(a, one)
		m, errOther := io.ReadFull(b, other)
		if n != m || !bytes.Equal(one[:n], other[:m]) || fmt.Sprint(err) != fmt.Sprint(errOther) {
			return false
		}
		if err != nil {
			return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		}
	}
}
