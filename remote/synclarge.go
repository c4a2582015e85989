package remote

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dlwb/dlwb/internal/units"
)

//go:embed syncscripts/large.sh
var largeScript string

const (
	// largeFrom is from what size on a file comes by itself: then a lost
	// connection loses little of it, and only what changed in it is sent.
	largeFrom = 16e6
	// largeApart is how much less of a file a node may have than others for
	// these to get it again rather than the laptop sending it twice.
	largeApart = 8e6
)

// largeFile is a large file on its way to nodes that have the same older one,
// or none.
type largeFile struct {
	*treeEntry
	base   string // the SHA-256 of the older one; empty: all is sent
	word   string // the name of what comes, there
	spans  []span // nil where all is sent
	size   int64  // of what is sent
	mu     sync.Mutex
	chunks []chunk // all of the file's; nil until it was read
}

func (f *largeFile) cutList() []chunk {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.chunks
}

func (f *largeFile) keepList(chunks []chunk) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.chunks = chunks
}

// large reports whether a file comes by itself.
func (s *nodeSync) large(e *treeEntry) bool {
	return e.kind == kindFile && e.size >= s.tree.large && s.view.has("large") && s.view.has("tar")
}

// baseOf names what a node has of a file, if what is to be sent can build on it.
func (s *nodeSync) baseOf(e *treeEntry) string {
	had := s.view.have[e.path]
	if s.long || had.kind != kindFile || had.size < s.tree.large || s.view.state(e.path) != untouched || !s.view.has("dir") {
		return ""
	}
	return had.value
}

// begun is how much of a file is on the node already, of how it is sent there.
func (v *nodeView) begun(word string) (bytes int64, whole bool) {
	for _, tool := range v.tools {
		name, size, _ := strings.Cut(tool, ":")
		switch name {
		case word + ".ok":
			return 0, true
		case word + ".part":
			bytes, _ = strconv.ParseInt(size, 10, 64)
		}
	}
	return max(0, bytes), false
}

// largeWord names how a file in one state comes to be from another one.
func largeWord(e *treeEntry, base string) string {
	return shortHash(fmt.Sprintf("%q %s %s", e.path, e.sum, base))
}

// sendLarge brings all large files to nodes, each to all that need it.
func (r *syncRound) sendLarge(ctx context.Context, nodes []*nodeSync) {
	for _, e := range r.tree.entries {
		if e.kind != kindFile || e.size < r.tree.large {
			continue
		}
		classes := map[string][]*nodeSync{}
		for _, s := range nodes {
			if s.err == nil && s.large(e) && slices.Contains(s.plan.send, e) {
				classes[s.baseOf(e)] = append(classes[s.baseOf(e)], s)
			}
		}
		var all sync.WaitGroup
		for base, class := range classes {
			all.Go(func() { r.sendOne(ctx, e, base, class) })
		}
		all.Wait()
	}
}

// sendOne brings a large file to nodes that have the same older one.
func (r *syncRound) sendOne(ctx context.Context, e *treeEntry, base string, nodes []*nodeSync) {
	f := &largeFile{treeEntry: e, base: base, word: largeWord(e, base), chunks: e.cuts}
	if err := f.plan(ctx, nodes[0]); err != nil {
		for _, s := range nodes {
			s.err = err
		}
		return
	}
	for _, s := range nodes {
		s.words(f)
	}
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(s *nodeSync) bool { _, whole := s.view.begun(f.word); return whole })
	for len(nodes) > 0 {
		group := f.alike(nodes)
		nodes = slices.DeleteFunc(nodes, func(s *nodeSync) bool { return slices.Contains(group, s) })
		if len(group) > 1 {
			group = f.pass(ctx, group)
		}
		each(group, func(s *nodeSync) { s.err = f.send(ctx, s) })
	}
}

// words notes what a node is told about a large file once it is there.
func (s *nodeSync) words(f *largeFile) {
	if s.placed == nil {
		s.placed = map[string]*largeFile{}
	}
	s.placed[f.path] = f
}

// plan works out what must be sent.
func (f *largeFile) plan(ctx context.Context, ask *nodeSync) error {
	file, err := ask.root.Open(f.path)
	if err != nil {
		return fmt.Errorf("%s: %w (%w)", nameText(f.path), errFileMoved, err)
	}
	defer func() { _ = file.Close() }()
	f.size = f.treeEntry.size
	if f.base == "" {
		return nil // its chunks are found while it is sent
	}
	old := ask.chunksOf(ctx, f.base)
	if len(old) == 0 {
		return nil
	}
	ask.report("looking what has changed in " + nameText(f.path))
	now := f.cutList()
	if now == nil {
		if _, now, err = copyCut(io.Discard, file); err != nil {
			return err
		}
		f.keepList(now)
	}
	if list := spans(old, now); literal(list) < f.size*9/10 {
		f.spans, f.size = list, literal(list)
	}
	return nil
}

// chunksOf asks a node for the chunks of a file that it has; none where it
// does not know them.
func (s *nodeSync) chunksOf(ctx context.Context, sum string) []chunk {
	line := Quote("sh", "-c", `exec cat "$HOME/.dlwb/sync/$1/chunks.$2"`, "dlwb", s.id, sum)
	text, res, err := execText(ctx, s.node, Cmd{Line: line, Quiet: hashLimit}, chunksMost)
	if err != nil || res.ExitCode != 0 {
		return nil
	}
	chunks, err := parseChunks(text)
	if err != nil {
		return nil
	}
	return chunks
}

// alike are nodes that have so much of the file that they can go on together.
func (f *largeFile) alike(nodes []*nodeSync) (group []*nodeSync) {
	most := int64(-1)
	for _, s := range nodes {
		has, _ := s.view.begun(f.word)
		most = max(most, has)
	}
	pairing := "?"
	for _, s := range nodes {
		has, _ := s.view.begun(f.word)
		if most-has > largeApart || len(group) > 0 && (pairing == "" || s.view.pairing() != pairing) {
			continue
		}
		pairing = s.view.pairing()
		group = append(group, s)
	}
	return group
}

// at is how much of what is sent all of these nodes have.
func (f *largeFile) at(nodes ...*nodeSync) int64 {
	least := f.size
	for _, s := range nodes {
		has, _ := s.view.begun(f.word)
		least = min(least, has)
	}
	return least
}

// command is the line that takes the file, from some byte on.
func (f *largeFile) command(s *nodeSync, at int64, how string, way ...string) string {
	old, list := "", ""
	if f.spans != nil {
		old, list = f.path, assembly(f.spans)
	}
	args := []string{"sh", "-c", digestScript + largeScript, "dlwb", s.dir, f.word, strconv.FormatInt(at, 10),
		strconv.FormatInt(f.size, 10), f.sum, how, old, list}
	return Quote(append(args, way...)...)
}

// send sends the file to one node.
func (f *largeFile) send(ctx context.Context, s *nodeSync) error {
	at := f.at(s)
	s.report(f.telling("sending", at))
	_, err := f.stream(ctx, s, at)
	if err != nil && f.spans != nil && ctx.Err() == nil && !isLostError(err) {
		// What the node has may not be what it is said to be: then all of it.
		f = &largeFile{treeEntry: f.treeEntry, word: largeWord(f.treeEntry, ""), size: f.treeEntry.size, chunks: f.cutList()}
		s.words(f)
		_, err = f.stream(ctx, s, 0)
	}
	return err
}

func isLostError(err error) bool {
	lost := new(LostError)
	return errors.As(err, &lost)
}

func (f *largeFile) telling(what string, at int64) string {
	text := fmt.Sprintf("%s %s, %s", what, nameText(f.path), units.Bytes(f.size-at))
	if f.size < f.treeEntry.size || at > 0 {
		text += " of " + units.Bytes(f.treeEntry.size)
	}
	return text
}

// stream sends the file to a node, which passes it on where a way says so.
func (f *largeFile) stream(ctx context.Context, s *nodeSync, at int64, way ...string) (said []byte, err error) {
	file, err := s.root.Open(f.path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w (%w)", nameText(f.path), errFileMoved, err)
	}
	defer func() { _ = file.Close() }()
	how := "plain"
	if s.view.has("gzip") && samplesPack(file, f.treeEntry.size) {
		how = "gzip"
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r, w := io.Pipe()
	fed := make(chan error, 1)
	go func() {
		err := f.feed(s.counted(w), file, at, how == "gzip")
		if err != nil && !errors.Is(err, io.ErrClosedPipe) {
			cancel(err)
		}
		_ = w.CloseWithError(err)
		fed <- err
	}()
	_, res, err := execText(ctx, s.node, Cmd{Line: f.command(s, at, how, way...), Stdin: r, Quiet: transferLimit}, viewMost)
	_ = r.CloseWithError(io.ErrClosedPipe)
	if feedErr := <-fed; feedErr != nil && !errors.Is(feedErr, io.ErrClosedPipe) {
		return nil, feedErr
	}
	if err == nil && res.ExitCode != 0 {
		err = s.failure(res)
		if info, statErr := s.root.Lstat(f.path); statErr != nil || f.isOther(info) {
			err = fmt.Errorf("%s: %w", nameText(f.path), errFileMoved)
		}
	}
	return res.Stderr, err
}

// isOther reports whether a file is no longer the one that was read.
func (e *treeEntry) isOther(info fs.FileInfo) bool {
	return info.Size() != e.size || !info.ModTime().Equal(e.mtime)
}

// feed writes what is to be sent, from some byte on.
func (f *largeFile) feed(to io.Writer, file io.ReaderAt, at int64, zip bool) error {
	closeAll := func() error { return nil }
	if zip {
		pack := newPackWriter(to)
		to, closeAll = pack, pack.Close
	}
	var err error
	switch {
	case f.spans != nil:
		_, err = copyLarge(to, literals(file, f.spans, at))
	case f.cutList() != nil:
		_, err = copyLarge(to, io.NewSectionReader(file, at, f.size-at))
	default:
		var cuts []chunk
		if _, cuts, err = copyCut(&behind{to, at}, io.NewSectionReader(file, 0, f.size)); err == nil {
			f.keepList(cuts)
		}
	}
	return errors.Join(err, closeAll())
}

// copyLarge copies in large pieces, whatever the two ends could do besides.
func copyLarge(to io.Writer, from io.Reader) (int64, error) {
	return io.CopyBuffer(justWriter{to}, justReader{from}, make([]byte, 1<<20))
}

// copyCut copies, and cuts what it copies meanwhile.
func copyCut(to io.Writer, from io.Reader) (int64, []chunk, error) {
	c := newCutter(to)
	n, err := copyLarge(c, from)
	close(c.blocks)
	return n, c.list(), err
}

// These hide what else a writer and a reader can do.
type (
	justWriter struct{ io.Writer }
	justReader struct{ io.Reader }
)

// behind passes on what comes after so many bytes.
type behind struct {
	to    io.Writer
	first int64
}

func (b *behind) Write(p []byte) (int, error) {
	skip := min(b.first, int64(len(p)))
	b.first -= skip
	n, err := b.to.Write(p[skip:])
	return int(skip) + n, err
}

// cutter passes on what is written to it, and cuts it meanwhile.
type cutter struct {
	chunker
	to     io.Writer
	blocks chan []byte
	cut    chan struct{}
}

func newCutter(to io.Writer) *cutter {
	c := &cutter{to: to, blocks: make(chan []byte), cut: make(chan struct{})}
	go func() {
		for block := range c.blocks {
			_, _ = c.chunker.Write(block) // takes all
			c.cut <- struct{}{}
		}
	}()
	return c
}

func (c *cutter) Write(p []byte) (int, error) {
	c.blocks <- p
	n, err := c.to.Write(p)
	<-c.cut
	return n, err
}

// samplesPack reports whether a file is worth compressing.
func samplesPack(file io.ReaderAt, size int64) bool {
	const samples, each = 16, 16 << 10
	var some []byte
	for i := range int64(samples) {
		block := make([]byte, each)
		n, _ := file.ReadAt(block, size/samples*i)
		some = append(some, block[:n]...)
	}
	return packs(some)
}

// pass sends the file to the first of several nodes, which passes it on to the
// others. Those that did not get it are the result.
func (f *largeFile) pass(ctx context.Context, group []*nodeSync) (left []*nodeSync) {
	group = slices.Clone(group)
	slices.SortStableFunc(group, func(a, b *nodeSync) int { return cmpBool(b.view.has("ssh"), a.view.has("ssh")) })
	head, others := group[0], group[1:]
	if !head.view.has("ssh") || int64(len(others))*(f.size-f.at(group...)) < head.tree.relay {
		return group
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	at, nonce := f.at(group...), head.stamp+"-"+randomWord()
	way := []string{"to", nonce}
	how := "plain"
	if file, err := head.root.Open(f.path); err == nil {
		if samplesPack(file, f.treeEntry.size) {
			how = "gzip"
		}
		_ = file.Close()
	}
	errs := make([]error, len(others))
	var all sync.WaitGroup
	through := make(chan struct{})
	for i, s := range others {
		way = append(way, s.node.Name())
		s.report(f.telling("getting", at) + " from " + head.node.Name())
		all.Go(func() { errs[i] = f.listen(ctx, s, at, how, nonce, through) })
	}
	head.report(f.telling("sending", at) + ", which goes on to " + count(len(others), "node") + " from there")
	_, err := f.stream(ctx, head, at, way...)
	if err != nil {
		cancel()
		left = append(left, head)
	}
	close(through)
	grace := time.AfterFunc(relayGrace+time.Duration(f.treeEntry.size/10e6)*time.Second, cancel)
	all.Wait()
	grace.Stop()
	for i, s := range others {
		if errs[i] == nil {
			continue
		}
		if err == nil {
			s.report(fmt.Sprintf("not reached from %s (%s): sending from here", head.node.Name(), lastWords([]byte(errs[i].Error()))))
		}
		left = append(left, s)
	}
	return f.anew(left)
}

// anew forgets how much of a file nodes had: some of it may have come, and
// nobody asked how much.
func (f *largeFile) anew(nodes []*nodeSync) []*nodeSync {
	for _, s := range nodes {
		s.view.tools = slices.DeleteFunc(slices.Clone(s.view.tools), func(tool string) bool { return strings.HasPrefix(tool, f.word+".part:") })
	}
	return nodes
}

// listen has a node take the file from another one.
func (f *largeFile) listen(ctx context.Context, s *nodeSync, at int64, how, nonce string, through <-chan struct{}) error {
	r, w := io.Pipe()
	go func() {
		<-through
		_, _ = io.WriteString(s.counted(w), "end\n")
		_ = w.Close()
	}()
	_, res, err := execText(ctx, s.node, Cmd{Line: f.command(s, at, how, "from", nonce), Stdin: r, Quiet: transferLimit}, viewMost)
	_ = r.CloseWithError(io.ErrClosedPipe)
	if err == nil && res.ExitCode != 0 {
		err = s.failure(res)
	}
	return err
}
