package transfer

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/internal/shellword"
)

// Rules say what of a project is sent.
type Rules struct {
	// Exclude are patterns of .gitignore, on top of the files that hold such.
	Exclude []string
	// Send are patterns of what is sent although it looks like a secret, and
	// Hold of what is held back although it does not. They are the user's: no
	// file of the project has a say in this.
	Send, Hold []string
	// Rooms are directories that are on the nodes as they are here, if only empty: what a
	// training writes to is often what git ignores, and there it would be missing.
	Rooms []string
	// NamesOnly has Scan look into no file for secrets: Read does, and every Sync.
	NamesOnly bool
}

// HeldFile is a file that is not sent because it looks like a secret.
type HeldFile struct {
	Path string `json:"path"`
	Why  string `json:"why"`
	// Asked says that a line of the project wants it sent, which is not enough.
	Asked bool `json:"asked,omitempty"`
}

// secretRules are what the user says about secrets.
type secretRules struct{ send, hold *ignoreList }

// listOf are patterns as one list; nil when there are none.
func listOf(patterns []string) *ignoreList {
	if len(patterns) == 0 {
		return nil
	}
	return &ignoreList{rules: parseIgnore(strings.Join(patterns, "\n"))}
}

// covers reports whether a list names a file, or a directory that it is in.
func (l *ignoreList) covers(file string) bool {
	if l == nil {
		return false
	}
	switch l.judge(file, false) {
	case ignored:
		return true
	case wanted:
		return false
	}
	for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
		if said := l.judge(dir, true); said != unsaid {
			return said == ignored
		}
	}
	return false
}

const (
	// peekSize is the size of the largest file that Scan looks into, and
	// peekMost how many: keys are small. Whatever is sent is looked into later,
	// when it is read anyway.
	peekSize = 16 << 10
	peekMost = 1000
	// certificatesMost is how much of a file with certificates is read.
	certificatesMost = 4 << 20
)

// head reads the beginning of a file; what can't be read has none.
func head(root *os.Root, p string, most int64) []byte {
	f, err := root.Open(p)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return nil
	}
	return text
}

// holdRead holds back the files that turned out to be secrets when they were
// read.
func (t *Tree) holdRead() {
	before := len(t.Held)
	t.entries = slices.DeleteFunc(t.entries, func(e *treeEntry) bool {
		if e.held == "" || e.sent {
			return false
		}
		t.Held = append(t.Held, HeldFile{Path: e.path, Why: e.held})
		t.Files--
		t.Bytes -= e.size
		return true
	})
	if len(t.Held) > before {
		t.tellHeld()
	}
}

// tellHeld puts a sentence about what is held back among the warnings.
func (t *Tree) tellHeld() {
	slices.SortFunc(t.Held, func(a, b HeldFile) int { return strings.Compare(a.Path, b.Path) })
	t.Warnings = slices.Clone(t.noticed)
	if text := t.HeldBack(); text != "" {
		t.Warnings = append(t.Warnings, text)
	}
}

// HeldBack says how many files are held back, the first of them, and what the
// user can do to send them; empty: none is.
func (t *Tree) HeldBack() string {
	if len(t.Held) == 0 {
		return ""
	}
	names, asked := make([]string, len(t.Held)), 0
	for i, f := range t.Held {
		names[i] = f.Path
		if f.Asked {
			asked++
		}
	}
	text := fmt.Sprintf("Held back, because it looks like secrets: %s: %s.", count(len(names), "file"), listNames(names))
	if asked > 0 {
		text += fmt.Sprintf(" The project wants %s of them sent, and has no say in that.", digits(asked))
	}
	return text + fmt.Sprintf(" To send one all the same: --send-secret %s, or secrets.send in your own settings.", shellword.Join(ignoreEscape(names[0])))
}

// Read reads the files that have changed since the last Sync, so that the next
// one begins at once, and gives sentences about those that seem to mention
// secrets. Nothing is sent.
func (t *Tree) Read(ctx context.Context) (warnings []string, err error) {
	if err := t.hash(ctx); err != nil {
		return nil, err
	}
	for _, e := range t.entries {
		if e.secret != "" && !e.sent {
			warnings = append(warnings, fmt.Sprintf("%s seems to hold %s, and is sent. To leave it out, put the line %s into %s.",
				nameText(e.path), e.secret, exactRule(e.path), dlwbIgnoreFile))
		}
		if len(warnings) == namesShown {
			break
		}
	}
	return warnings, nil
}

// exactRule is the pattern of an ignore file that matches one path only.
func exactRule(p string) string {
	rule := ignoreEscape(p)
	if rule[0] != '/' {
		rule = "/" + rule
	}
	return rule
}
