package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dlwb/dlwb/remote"
)

// SyncPreview is what a Sync would do on one node.
type SyncPreview struct {
	Node   string   `json:"node"`
	Files  int      `json:"files"`  // files and links that would be sent
	Bytes  int64    `json:"bytes"`  // their size, before compression
	Send   []string `json:"send"`   // their paths; the first thousand of each list
	Remove []string `json:"remove"` // files that would be removed
	// Edited were edited on the node and would stay as they are; Aside are
	// edited there, and would be moved into ~/.dlwb/kept to make way.
	Edited []string `json:"edited"`
	Aside  []string `json:"aside"`
}

// previewMost bounds each list of a preview.
const previewMost = 1000

// PreviewSync works out what Sync would do, and changes nothing. Without nodes
// the one preview is of a node that has nothing yet.
func PreviewSync(ctx context.Context, nodes []*remote.Node, t *Tree, remoteDir string) ([]SyncPreview, error) {
	return previewNodes(ctx, peersOf(nodes), t, remoteDir)
}

func previewNodes(ctx context.Context, nodes []syncPeer, t *Tree, remoteDir string) ([]SyncPreview, error) {
	dir, err := nodeDir(remoteDir)
	if err != nil {
		return nil, fmt.Errorf("preview a sync: %w", err)
	}
	if err := t.hash(ctx); err != nil {
		return nil, fmt.Errorf("preview a sync: %w", err)
	}
	want := title(t.manifest())
	if len(nodes) == 0 {
		s := &nodeSync{tree: t, want: want, view: &nodeView{}}
		s.plan = planSync(t, want.manifest, s.view)
		return []SyncPreview{s.preview("a new node")}, nil
	}
	byHeart := t.recall()
	previews, errs := make([]SyncPreview, len(nodes)), make([]error, len(nodes))
	var all sync.WaitGroup
	for i, n := range nodes {
		s := &nodeSync{node: n, tree: t, want: want, byHeart: byHeart, dir: dir, id: idOf(n, dir), stamp: "preview", looking: true, report: func(string) {}}
		all.Go(func() {
			if err := s.prepare(ctx); err != nil {
				errs[i] = s.failure(err)
			}
			previews[i] = s.preview(n.Name())
		})
	}
	all.Wait()
	return previews, errors.Join(errs...)
}

func (s *nodeSync) preview(name string) SyncPreview {
	p := SyncPreview{Node: name, Send: []string{}, Remove: []string{}, Edited: []string{}, Aside: []string{}}
	if s.plan == nil {
		return p
	}
	for _, e := range s.plan.send {
		if e.kind == kindDir {
			continue
		}
		p.Files++
		p.Bytes += e.size
		p.Send = append(p.Send, e.path)
	}
	for _, name := range s.plan.remove {
		if !slices.Contains(s.plan.gone, name) && !slices.Contains(s.plan.aside, name) {
			p.Remove = append(p.Remove, name)
		}
	}
	p.Edited = append(p.Edited, s.plan.edited...)
	p.Aside = append(p.Aside, s.plan.aside...)
	for _, list := range []*[]string{&p.Send, &p.Remove, &p.Edited, &p.Aside} {
		*list = slices.Clip((*list)[:min(previewMost, len(*list))])
	}
	return p
}

// ChangedSince are the files that have changed since a moment, as far as their times tell.
func (t *Tree) ChangedSince(at time.Time) (paths []string) {
	for _, e := range t.entries {
		if e.kind == kindFile && e.mtime.After(at) {
			paths = append(paths, e.path)
		}
	}
	return paths
}

// Fingerprint is equal for trees in which no file has changed, as far as names,
// sizes, times and modes tell.
func (t *Tree) Fingerprint() string {
	sum := sha256.New()
	for _, e := range t.entries {
		_, _ = fmt.Fprintf(sum, "%q %c %o %d %d %q\n", e.path, e.kind, e.mode, e.size, e.mtime.UnixNano(), e.link)
	}
	return hex.EncodeToString(sum.Sum(nil))
}
