package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/remote/wire"
	"github.com/dlwb/dlwb/remote/wire/bulk"
)

// Put copies what is in the directory from of this machine into the directory
// remoteDir of a node, below its home, with the times that the files have. What
// is there under the name of something that comes is moved to the directory
// aside, also below the home: nothing is removed. Each thing takes its place
// when all of it is there. When the connection is lost, it goes on where it was
// over another one.
func Put(ctx context.Context, n *remote.Node, from, remoteDir, aside string) error {
	if err := putOn(ctx, n, from, remoteDir, aside); err != nil {
		return fmt.Errorf("put %s on %s:%s: %w", from, n.Name(), remoteDir, err)
	}
	return nil
}

func putOn(ctx context.Context, n caller, from, remoteDir, aside string) error {
	place, err := asideRequest(remoteDir, aside)
	if err != nil {
		return err
	}
	place.Stage = ".dlwb-put-" + randomWord()
	u := &upload{node: n, from: from, request: wire.PutRequest{Dir: place.Dir, Stage: place.Stage}}
	u.stage = puller{node: n, dir: place.Dir + "/" + place.Stage, paths: []string{"."}, left: PullLimits{MaxFiles: pullFiles}, res: &PullResult{}}
	err = persist(ctx, n, &u.stage.met, &u.moved, pullPatience, func() error { return u.send(ctx) })
	if err == nil {
		return n.Ask(ctx, wire.Aside, place, &wire.AsideAnswer{})
	}
	if u.stage.met { // what came of it is not to fill the disk there
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropLimit)
		defer cancel()
		_ = n.Ask(limited, wire.Aside, wire.AsideRequest{Dir: place.Dir, Aside: place.Aside, Stage: place.Stage, Drop: true}, &wire.AsideAnswer{})
	}
	return err
}

// dropLimit bounds the removing of what was put in vain; the node does it itself a
// day later.
const dropLimit = 5 * time.Second

func asideRequest(remoteDir, aside string) (r wire.AsideRequest, err error) {
	dir, err := nodeDir(remoteDir)
	if err == nil {
		aside, err = nodeDir(aside)
	}
	return wire.AsideRequest{Dir: dir, Aside: aside}, err
}

// upload is one Put under way.
type upload struct {
	node    caller
	from    string
	request wire.PutRequest
	stage   puller          // looks at what is there of it
	whole   map[string]bool // what of it is there
	part    int64           // how much of the file that was under way
	of      int             // in that try
	moved   int64
}

// send brings to the node what it does not have yet.
func (u *upload) send(ctx context.Context) error {
	u.whole, u.part = map[string]bool{}, 0
	if u.stage.met {
		if err := u.stage.listOnce(ctx, u.there); err != nil {
			return err
		}
	}
	u.request.Try++
	s, done, err := u.stage.begin(ctx, wire.Put, u.request)
	if err != nil {
		return err
	}
	defer done()
	files := make(chan bulk.File)
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	var walkErr error
	go func() {
		defer close(files)
		walkErr = u.walk(reading, files)
	}()
	err = bulk.Send(ctx, countingCall{s, &u.moved}, files)
	cancel()
	for range files { // until the walk has ended
	}
	if err == nil && walkErr != nil {
		return walkErr
	} else if err == nil {
		err = s.End(nil)
	}
	return putEnd(s, err)
}

// there notes what is in the stage of what is here.
func (u *upload) there(t wire.Thing) error {
	if name, is := strings.CutPrefix(t.Name, wire.StageWhole); is {
		info, err := os.Lstat(filepath.Join(u.from, name))
		if err == nil && info.Mode().IsRegular() && info.Size() == t.Size && info.ModTime().Unix() == t.MTime.Sec {
			u.whole[name] = true
		}
	} else if number, is := strings.CutPrefix(t.Name, wire.StagePart); is && t.Size > u.part {
		if try, err := strconv.Atoi(number); err == nil && try > 0 && try <= u.request.Try {
			u.part, u.of = t.Size, try
		}
	}
	return nil
}

// countingCall notes what was sent.
type countingCall struct {
	patientCall
	moved *int64
}

func (c countingCall) Send(v any) error {
	*c.moved++
	return c.patientCall.Send(v)
}

// putEnd is how the node ended the call: what it says counts more than that it
// takes no more.
func putEnd(s patientCall, sent error) error {
	err := s.Recv(&struct{}{})
	fault := new(wire.Fault)
	switch {
	case errors.As(err, &fault) && fault.Kind != wire.Absent: // what a try that still went on has used is looked for again
		return fmt.Errorf("the node says: %s", lastWords([]byte(fault.Text)))
	case sent == nil && errors.Is(err, io.EOF):
		return nil
	}
	return bulk.Lost(errors.Join(sent, err))
}

// walk gives the files, directories and links that are to be put.
func (u *upload) walk(ctx context.Context, files chan<- bulk.File) error {
	return filepath.WalkDir(u.from, func(file string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(u.from, file)
		if err != nil || relErr != nil || rel == "." {
			return errors.Join(err, relErr)
		}
		f, ok, err := u.file(file, filepath.ToSlash(rel), d)
		if err != nil || !ok {
			return err
		}
		select {
		case files <- f:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
}

// file is one thing as it is sent; false: it is not.
func (u *upload) file(file, name string, d fs.DirEntry) (f bulk.File, ok bool, err error) {
	info, err := d.Info()
	if err != nil {
		return f, false, err
	}
	mtime := info.ModTime()
	head := &wire.Head{Name: name, Mode: uint32(info.Mode().Perm()), Dir: info.IsDir(),
		MTime: wire.Time{Sec: mtime.Unix(), Nano: uint32(mtime.Nanosecond())}}
	f.Head = head
	switch {
	case info.Mode().IsRegular():
		if u.whole[name] {
			return f, false, nil
		}
		if u.part <= info.Size() { // the first one that is not whole is the one that was under way
			head.From, head.Of = u.part, u.of
		}
		u.part = 0
		f.Path, f.From = file, head.From
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(file)
		head.Link = target
		return f, true, err
	}
	return f, head.Dir || f.Path != "", nil
}

// MoveAside moves things of the node's directory remoteDir to the directory
// aside, both below its home. What is not there is no error.
func MoveAside(ctx context.Context, n *remote.Node, remoteDir, aside string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	request, err := asideRequest(remoteDir, aside)
	for _, name := range names {
		if !localPath(name) || filepath.Base(name) != name {
			return fmt.Errorf("%s is no name of a thing in a directory", nameText(name))
		}
		request.Names = append(request.Names, name)
	}
	if err != nil {
		return err
	}
	return n.Ask(ctx, wire.Aside, request, &wire.AsideAnswer{})
}
