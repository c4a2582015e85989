package transfer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/internal/namejson"
	"github.com/dlwb/dlwb/remote"
)

// print stands for a file as it was at one moment: for its path and its state. That
// two of them are one by chance is as good as impossible for as many as a node may
// have.
type print [12]byte

func printOf(path, state string) (p print) {
	b := append(append(append(make([]byte, 0, 512), path...), 0), state...)
	sum := sha256.Sum256(b)
	copy(p[:], sum[:])
	return p
}

func comparePrints(a, b print) int { return bytes.Compare(a[:], b[:]) }

// Seen is which files were below some paths of a node at one moment, and in which
// state. It tells whether a file was, and keeps no names: a node may have very many.
type Seen struct {
	prints []print // sorted
	// whole is set where some of the states have whole seconds: see func seconds.
	whole bool
}

const (
	// seenMost is how many files a Seen holds, and a look takes: more than a Pull does,
	// in 5 MB.
	seenMost = 400_000
	// seenChunk is for how many room is made at a time.
	seenChunk = 8192
)

// Look takes note of what is below paths of the node's directory remoteDir. Paths that
// are not there are no error. It reads nothing of the files.
func Look(ctx context.Context, n *remote.Node, remoteDir string, paths []string) (Seen, error) {
	return lookAt(ctx, n, remoteDir, paths)
}

func lookAt(ctx context.Context, n caller, remoteDir string, paths []string) (Seen, error) {
	var chunks [][]print
	err := eachOf(ctx, n, remoteDir, paths, func() func(string, string) error {
		chunks = nil
		return func(path, state string) error {
			end := len(chunks) - 1
			if end < 0 || len(chunks[end]) == seenChunk {
				if end+1 == seenMost/seenChunk {
					return fmt.Errorf("there are more than %s: name fewer paths, or narrower ones", count(len(chunks)*seenChunk, "file"))
				}
				chunks, end = append(chunks, make([]print, 0, seenChunk)), end+1
			}
			chunks[end] = append(chunks[end], printOf(path, state))
			return nil
		}
	})
	if err != nil {
		return Seen{}, err
	}
	return seenOf(slices.Concat(chunks...)), nil
}

func seenOf(prints []print) Seen {
	slices.SortFunc(prints, comparePrints)
	return Seen{prints: prints}
}

// Len is how many files there were.
func (s Seen) Len() int { return len(s.prints) }

// Holds reports whether a file was there, and in this state. The state is one of the
// same node.
func (s Seen) Holds(path, state string) bool {
	if s.has(printOf(path, state)) {
		return true
	}
	return s.whole && s.has(printOf(path, seconds(state)))
}

func (s Seen) has(p print) bool {
	_, is := slices.BinarySearchFunc(s.prints, p, comparePrints)
	return is
}

// seconds is a state without what its times have below a second: an earlier dlwb noted
// no more on nodes with busybox.
func seconds(state string) string {
	words := strings.Fields(state)
	for i, word := range words {
		words[i], _, _ = strings.Cut(word, ".")
	}
	return strings.Join(words, " ")
}

// MarshalBinary writes all of it, in 12 bytes a file.
func (s Seen) MarshalBinary() ([]byte, error) {
	b := make([]byte, 0, len(s.prints)*len(print{}))
	for _, p := range s.prints {
		b = append(b, p[:]...)
	}
	return b, nil
}

// UnmarshalBinary reads what MarshalBinary has written.
func (s *Seen) UnmarshalBinary(b []byte) error {
	if len(b)%len(print{}) != 0 {
		return io.ErrUnexpectedEOF
	}
	prints := make([]print, 0, len(b)/len(print{}))
	for ; len(b) > 0; b = b[len(print{}):] {
		prints = append(prints, print(b))
	}
	*s = seenOf(prints)
	return nil
}

// UnmarshalJSON reads what an earlier dlwb wrote: the states by path.
func (s *Seen) UnmarshalJSON(text []byte) error {
	files, err := earlierFiles(text)
	if err != nil {
		return err
	}
	var prints []print
	whole := false
	for path, state := range files {
		prints = append(prints, printOf(path, state))
		whole = whole || !strings.Contains(state, ".")
	}
	*s = seenOf(prints)
	s.whole = whole
	return nil
}

func earlierFiles(text []byte) (files map[string]string, err error) {
	err = json.Unmarshal(text, &files)
	return namejson.Keys(files, namejson.Decode), err
}

// Sum stands for files in their states, in whatever order they were told: two are the
// same where the files are.
type Sum struct {
	Count int
	all   print
}

// Add adds a file.
func (s *Sum) Add(path, state string) {
	s.Count++
	for i, b := range printOf(path, state) {
		s.all[i] ^= b
	}
}

// MarshalJSON writes it as text.
func (s Sum) MarshalJSON() ([]byte, error) {
	return json.Marshal(fmt.Sprintf("%d %x", s.Count, s.all))
}

// UnmarshalJSON reads what MarshalJSON has written, and what an earlier dlwb wrote: the
// states by path.
func (s *Sum) UnmarshalJSON(text []byte) error {
	*s = Sum{}
	if files, err := earlierFiles(text); err == nil {
		for path, state := range files {
			s.Add(path, state)
		}
		return nil
	}
	var said, all string
	err := json.Unmarshal(text, &said)
	if err == nil {
		_, err = fmt.Sscanf(said, "%d %s", &s.Count, &all)
	}
	if err == nil && len(all) != hex.EncodedLen(len(s.all)) {
		err = errors.New("it has another length")
	}
	if err == nil {
		_, err = hex.Decode(s.all[:], []byte(all))
	}
	return err
}
