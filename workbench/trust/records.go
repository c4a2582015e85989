package trust

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/namejson"
	"github.com/dlwb/dlwb/internal/plainfile"
	"github.com/dlwb/dlwb/internal/wholefile"
)

// records are the decisions of a user: a directory with a file for each path
// of a profile. Two processes that write the same one leave one of the two
// decisions; the other is asked for again.
type records struct{ dir string }

// decision is that a profile was trusted, as it was then.
type decision struct {
	Key   string    `json:"key"`
	At    time.Time `json:"at"`
	Files []File    `json:"files"`
}

// record is all decisions about a profile, the newest first. Going back to what
// was trusted before asks nothing.
type record struct {
	Path      string     `json:"path"`
	Decisions []decision `json:"decisions"`
}

// mostDecisions is how many decisions are kept of a profile, mostRecord how
// many bytes they have at most.
const (
	mostDecisions = 32
	mostRecord    = 32 << 20
)

func (r records) file(path string) string {
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(r.dir, hex.EncodeToString(sum[:16])+".json")
}

// read reads the decisions about a profile. What can't be read is no decision.
func (r records) read(path string) record {
	var rec record
	text, err := plainfile.Read(r.file(path), mostRecord)
	if err != nil || json.Unmarshal(text, &rec) != nil {
		return record{Path: path}
	}
	if rec = rec.paths(namejson.Decode); rec.Path != path {
		return record{Path: path}
	}
	return rec
}

// paths is a record whose paths are coded: one that is no UTF-8 would be another one in
// JSON, and what lies there would never be trusted.
func (r record) paths(code func(string) string) record {
	coded := record{Path: code(r.Path)}
	for _, d := range r.Decisions {
		d.Files = slices.Clone(d.Files)
		for i := range d.Files {
			d.Files[i].Path = code(d.Files[i].Path)
		}
		coded.Decisions = append(coded.Decisions, d)
	}
	return coded
}

// add keeps the decision to trust what was looked at.
func (r records) add(s *Subject) error {
	rec := r.read(s.Path)
	rec.Decisions = slices.DeleteFunc(rec.Decisions, func(d decision) bool { return d.Key == s.Key })
	now := decision{Key: s.Key, At: time.Now().UTC().Round(time.Second), Files: s.Files}
	rec.Decisions = slices.Insert(rec.Decisions, 0, now)
	rec.Decisions = rec.Decisions[:min(len(rec.Decisions), mostDecisions)]
	text, err := json.Marshal(rec.paths(namejson.Encode))
	if err != nil {
		return err
	}
	return wholefile.Write(r.file(s.Path), text, 0o600)
}

// compare says of a subject whether it is trusted, and what has changed since
// the last time that it was.
func (r records) compare(s *Subject) {
	all := r.read(s.Path).Decisions
	if i := slices.IndexFunc(all, func(d decision) bool { return d.Key == s.Key }); i >= 0 {
		s.Trusted, s.TrustedAt = true, &all[i].At
		return
	}
	if len(all) > 0 {
		s.TrustedAt, s.Changed = &all[0].At, changes(all[0].Files, s.Files)
	}
}

// changes says in which files two states of a profile differ.
func changes(was, now []File) []string {
	at := func(list []File, f File) int {
		return slices.IndexFunc(list, func(o File) bool { return o.Kind == f.Kind && o.Path == f.Path })
	}
	said := []string{}
	for _, f := range now {
		switch i := at(was, f); {
		case i < 0:
			said = append(said, f.Path+" is new")
		case was[i].Sum != f.Sum:
			said = append(said, f.Path+" has changed")
		}
	}
	for _, f := range was {
		if at(now, f) < 0 {
			said = append(said, f.Path+" is gone")
		}
	}
	if len(said) == 0 { // the files are the same: it is where the code lies
		said = append(said, "its code directory has moved")
	}
	return said
}

// Entry is a profile that was trusted.
type Entry struct {
	Path  string    `json:"path"`
	Hash  string    `json:"hash"`
	At    time.Time `json:"at"`
	Count int       `json:"versions"` // how many states of it are trusted
}

// List gives the profiles that were trusted, by their paths.
func (g *Gate) List() ([]Entry, error) {
	names, err := os.ReadDir(g.records.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list trusted profiles: %w", err)
	}
	list := []Entry{}
	for _, n := range names {
		var rec record
		text, err := plainfile.Read(filepath.Join(g.records.dir, n.Name()), mostRecord)
		if err != nil || json.Unmarshal(text, &rec) != nil || len(rec.Decisions) == 0 || strings.HasPrefix(n.Name(), ".") {
			continue
		}
		rec = rec.paths(namejson.Decode)
		d := rec.Decisions[0]
		list = append(list, Entry{Path: rec.Path, Hash: d.Key[:min(len(d.Key), ShownDigits)], At: d.At, Count: len(rec.Decisions)})
	}
	slices.SortFunc(list, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	return list, nil
}

// Revoke takes back every decision about a profile; false: there was none.
func (g *Gate) Revoke(path string) (bool, error) {
	err := os.Remove(g.records.file(realPath(path)))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("take back the trust in %s: %w", path, err)
	}
	return true, nil
}
