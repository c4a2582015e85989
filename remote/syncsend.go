package remote

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/pkg/sftp"

	"github.com/dlwb/dlwb/internal/units"
)

//go:embed syncscripts/check.sh
var checkScript string

// digestScript comes before the scripts that make a digest.
//
//go:embed syncscripts/digest.sh
var digestScript string

//go:embed syncscripts/receive.sh
var receiveScript string

//go:embed syncscripts/apply.sh
var applyScript string

// viewMost bounds what a node may tell about a project.
const viewMost = 256 << 20

// gzipFrom is from how many bytes on compressing is worth a process there.
const gzipFrom = 4096

// errFileMoved: a file changed between the reading for its checksum and the
// reading for the stream.
var errFileMoved = errors.New("changed while it was sent")

// syncNode is what a sync needs of a *Node.
type syncNode interface {
	Name() string
	Exec(context.Context, Cmd) (Result, error)
	SFTP(context.Context) (*sftp.Client, error)
}

// nodeSync is the sync of one node.
type nodeSync struct {
	node   syncNode
	tree   *Tree
	root   *os.Root
	want   titled
	dir    string // as the node's shell takes it
	id     string // the name of the state
	stamp  string // names what this sync moves aside
	report func(string)

	byHeart titled // what the node may have without telling it
	long    bool   // the records are sent in full
	view    *nodeView
	plan    *syncPlan
	began   bool // something was done on the node
	kept    []string
	sent    []*treeEntry
	// shortened: records were sent as what changes in them; broken: something
	// went wrong while others passed on what this node needs.
	shortened, broken bool
	// placed are large files that have come, but are not in their places yet.
	placed map[string]*largeFile

	wire atomic.Int64 // bytes that were sent
	err  error
}

// counted counts what is written for a node.
func (s *nodeSync) counted(w io.Writer) io.Writer {
	return writerFunc(func(p []byte) (int, error) {
		n, err := w.Write(p)
		s.wire.Add(int64(n))
		return n, err
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// endOnError ends a command when its output can't be written: by itself a
// command whose output nobody reads would wait for ever.
type endOnError struct {
	to  io.Writer
	end context.CancelCauseFunc
}

func (w endOnError) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	if err != nil {
		w.end(err)
	}
	return n, err
}

// execTo runs a command with its output going to a writer that may fail.
func execTo(ctx context.Context, n syncNode, c Cmd, to io.Writer) (Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c.Stdout = endOnError{to, cancel}
	res, err := n.Exec(ctx, c)
	if ctx.Err() != nil && err == nil {
		err = context.Cause(ctx)
	}
	return res, err
}

// execText runs a command that says at most so many bytes.
func execText(ctx context.Context, n syncNode, c Cmd, most int64) (string, Result, error) {
	var text strings.Builder
	capped := &cappedWriter{to: &text, left: most}
	res, err := execTo(ctx, n, c, capped)
	if capped.over {
		err = fmt.Errorf("the node said more than %s", units.Bytes(most))
	}
	return text.String(), res, err
}

// cappedWriter fails when it gets more than it may take.
type cappedWriter struct {
	to   io.Writer
	left int64
	over bool
}

func (w *cappedWriter) Write(p []byte) (int, error) {
	if int64(len(p)) > w.left {
		w.over = true
		return 0, errors.New("too much")
	}
	n, err := w.to.Write(p)
	w.left -= int64(n)
	return n, err
}

// send brings a batch to the node and has it put in place there.
func (s *nodeSync) send(ctx context.Context, b *batch) error {
	have := b.after(s.view.have, s.want.manifest)
	how := "tar"
	switch {
	case !s.view.has("tar"):
		how = "sftp"
	case s.view.has("gzip") && b.bytes+100*int64(len(have)) >= gzipFrom:
		how = "gzip"
	}
	nonce := s.stamp + "-" + randomWord()
	cmd := Cmd{Line: s.receive(nonce, how), Quiet: transferLimit}
	text, res, err := s.deliver(ctx, cmd, how, nonce, b, have)
	if err != nil {
		return err
	}
	if res.ExitCode != 0 {
		return s.failure(res)
	}
	return s.done(b, have, text)
}

// deliver runs the receiving command and feeds it.
func (s *nodeSync) deliver(ctx context.Context, cmd Cmd, how, nonce string, b *batch, have manifest) (string, Result, error) {
	if how == "sftp" {
		if err := s.putAll(ctx, nonce, b, have); err != nil {
			return "", Result{}, err
		}
		return execText(ctx, s.node, cmd, viewMost)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r, w := io.Pipe()
	fed := make(chan error, 1)
	go func() {
		err := s.feed(s.counted(w), how == "gzip", b, have)
		if err != nil && !errors.Is(err, io.ErrClosedPipe) {
			cancel(err) // the node must not take half a stream for a whole one
		}
		_ = w.CloseWithError(err)
		fed <- err
	}()
	cmd.Stdin = r
	text, res, err := execText(ctx, s.node, cmd, viewMost)
	_ = r.CloseWithError(io.ErrClosedPipe)
	if feedErr := <-fed; feedErr != nil && !errors.Is(feedErr, io.ErrClosedPipe) {
		return "", res, feedErr
	}
	return text, res, err
}

// feed writes the stream.
func (s *nodeSync) feed(w io.Writer, compress bool, b *batch, have manifest) error {
	closeAll := func() error { return nil }
	if compress {
		zip := newPackWriter(w)
		w, closeAll = zip, zip.Close
	}
	to := &tarSink{w: tar.NewWriter(w), made: map[string]bool{}}
	return errors.Join(s.writeBatch(to, b, have), to.w.Close(), closeAll())
}

// A sink takes what belongs to a batch: as a stream, or file by file.
type sink interface {
	dir(name string) error
	link(name, target string) error
	file(name string, e *treeEntry, r io.Reader) error
	// script is what the node's shell has to do before the batch's own script.
	script() string
}

// writeBatch writes everything that the node needs for a batch. The script
// comes last: where it is, all is.
func (s *nodeSync) writeBatch(to sink, b *batch, have manifest) error {
	coming := slices.DeleteFunc(slices.Clone(b.send), func(e *treeEntry) bool { return s.placed[e.path] != nil })
	if err := s.writeEntries(to, coming); err != nil {
		return err
	}
	return writeRecords(to, s.records(b, have, to.script()))
}

// writeEntries writes files and links of the project.
func (s *nodeSync) writeEntries(to sink, entries []*treeEntry) error {
	for _, e := range entries {
		if err := s.writeEntry(to, e); err != nil {
			return err
		}
	}
	return nil
}

// writeEntry sends a file or a link of the project, and checks that it is
// still the one whose checksum we have.
func (s *nodeSync) writeEntry(to sink, e *treeEntry) error {
	if err := to.dir(path.Join("f", path.Dir(e.path))); err != nil {
		return err
	}
	if e.kind == kindLink {
		return to.link("f/"+e.path, e.link)
	}
	f, err := s.root.Open(e.path)
	if err != nil {
		return fmt.Errorf("%s: %w (%w)", nameText(e.path), errFileMoved, err)
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	// One byte more than there should be shows a file that has grown.
	from := io.TeeReader(io.LimitReader(f, e.size+1), sum)
	err = to.file("f/"+e.path, e, from)
	if errors.Is(err, io.ErrClosedPipe) {
		return err
	}
	if errors.Is(err, errFileMoved) || err == nil && hex.EncodeToString(sum.Sum(nil)) != e.sum {
		return fmt.Errorf("%s: %w", nameText(e.path), errFileMoved)
	}
	return err
}

// tarSink writes a tar stream. The format is GNU's: it is the one that GNU
// tar, busybox and libarchive all read, with long names of any bytes.
type tarSink struct {
	w    *tar.Writer
	made map[string]bool
}

func (t *tarSink) dir(name string) error {
	if t.made[name] {
		return nil
	}
	t.made[name] = true
	return t.w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, Format: tar.FormatGNU})
}

func (t *tarSink) link(name, target string) error {
	return t.w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777, Format: tar.FormatGNU})
}

func (t *tarSink) script() string { return "" }

func (t *tarSink) file(name string, e *treeEntry, r io.Reader) error {
	head := &tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: e.size,
		Mode: int64(e.mode), ModTime: e.mtime, Format: tar.FormatGNU,
	}
	if err := t.w.WriteHeader(head); err != nil {
		return err
	}
	return copyExactly(t.w, r, e.size)
}

// copyExactly copies a file that must have a certain size.
func copyExactly(w io.Writer, r io.Reader, size int64) error {
	n, err := io.CopyN(w, r, size)
	if errors.Is(err, io.EOF) && n < size {
		return errFileMoved
	}
	if err != nil {
		return err
	}
	if n, _ := io.CopyN(io.Discard, r, 1); n > 0 {
		return errFileMoved
	}
	return nil
}

// done takes over what the node tells after a batch: what had to make way, and
// how the new files look there.
func (s *nodeSync) done(b *batch, have manifest, answer string) error {
	length, rest, _ := strings.Cut(answer, "\n")
	n, err := strconv.Atoi(strings.TrimSpace(length))
	if err != nil || n < 0 || n > len(rest) {
		return fmt.Errorf("the node's answer to a finished stream is %.60q", answer)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(rest[:n], "\x00"), "\x00") {
		if name != "" {
			s.kept = append(s.kept, name)
		}
	}
	states := parseStats(rest[n:])
	maps.Copy(s.view.states, states)
	maps.Copy(s.view.now, states)
	s.view.have = have
	s.began = true
	s.sent = append(s.sent, b.send...)
	return nil
}
