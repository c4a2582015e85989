package remote

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/dlwb/dlwb/internal/units"
)

// look asks the node what it has: the one round trip of a sync that finds
// nothing to do.
func (s *nodeSync) look(ctx context.Context) error {
	line := Quote("sh", "-c", checkScript, "dlwb", s.dir, s.id, s.want.title, s.byHeart.title)
	text, res, err := execText(ctx, s.node, Cmd{Line: line, Quiet: hashLimit}, viewMost)
	if err != nil {
		return err
	}
	if res.ExitCode != 0 {
		return s.failure(res)
	}
	s.view, err = parseView(text)
	if err == nil && s.view.clean {
		if s.byHeart.manifest == nil {
			return errors.New("the node says that it has what it was not asked for")
		}
		s.view.have = s.byHeart.manifest
	}
	return err
}

// parseView reads the answer of check.sh.
func parseView(text string) (*nodeView, error) {
	head, rest, _ := strings.Cut(text, "\n")
	if head == "same" {
		return &nodeView{same: true}, nil
	}
	words := strings.Fields(head)
	if len(words) == 0 || words[0] != "differs" {
		return nil, fmt.Errorf("the node answered %.60q instead of telling what it has; does its login shell print something?", head)
	}
	v := &nodeView{tools: words[1:]}
	if v.has("clean") {
		v.clean = true
		v.states, v.now = map[string][]string{}, map[string][]string{}
		return v, nil
	}
	if v.has("zipped") {
		var err error
		if rest, err = unzip(rest); err != nil {
			return nil, fmt.Errorf("the node's answer to what it has broke off: %w", err)
		}
	}
	var parts [3]string
	for i := range parts {
		length, body, _ := strings.Cut(rest, "\n")
		n, err := strconv.Atoi(strings.TrimSpace(length))
		if err != nil || n < 0 || n > len(body) {
			return nil, errors.New("the node's answer to what it has broke off")
		}
		parts[i], rest = body[:n], body[n:]
	}
	v.have, v.halfway = parseManifest(parts[0]), parts[2] != ""
	v.states, v.now = parseStats(parts[1]+parts[2]), parseStats(rest)
	return v, nil
}

// unzip unpacks what a node sent, as far as it may say so much.
func unzip(text string) (string, error) {
	r, err := gzip.NewReader(strings.NewReader(text))
	if err != nil {
		return "", err
	}
	var plain strings.Builder
	n, err := io.Copy(&plain, io.LimitReader(r, viewMost+1))
	if n > viewMost {
		err = fmt.Errorf("it is more than %s", units.Bytes(viewMost))
	}
	return plain.String(), err
}

// pairing names the pairing that lets this node take a stream from another
// one; empty: it can't.
func (v *nodeView) pairing() string {
	for _, word := range v.tools {
		if mark, ok := strings.CutPrefix(word, "peers="); ok && v.has("tar") && v.has("gzip") {
			return mark
		}
	}
	return ""
}

// heartFile keeps what the nodes had after the last sync of a large project,
// so that they need not tell it.
func (t *Tree) heartFile() string { return t.HashCache + "-nodes" }

// recall reads what the nodes had after the last sync; nothing: that is not known.
func (t *Tree) recall() titled {
	if !t.cached() {
		return titled{}
	}
	f, err := os.Open(t.heartFile())
	if err != nil {
		return titled{}
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, viewMost))
	if err != nil {
		return titled{}
	}
	m := parseManifest(string(text))
	if len(m) == 0 {
		return titled{}
	}
	first, _, _ := strings.Cut(string(text), "\n") // which has been checked
	return titled{m, first}
}

// remember writes down what the nodes have now. It is only a loss of time when
// that fails: then they tell it.
func (t *Tree) remember(m manifest) {
	if t.cached() {
		_ = writeWhole(t.heartFile(), m.String())
	}
}
