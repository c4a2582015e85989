package trust

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/remote/transfer"
)

// File is a file that a decision covers.
type File struct {
	Kind string `json:"kind"` // profile, ignore or environment
	Path string `json:"path"`
	Sum  string `json:"sha256"`
}

// The kinds of files that a decision covers.
const (
	KindProfile     = "profile"
	KindIgnore      = "ignore"
	KindEnvironment = "environment"
)

// Subject is a profile with all that a decision about it covers, and what it
// would do.
type Subject struct {
	Path     string `json:"path"` // links resolved
	Key      string `json:"key"`
	Trusted  bool   `json:"trusted"`
	Name     string `json:"profile"`
	Provider string `json:"provider"`
	Nodes    int    `json:"nodes"`
	Command  string `json:"command"`
	Project  string `json:"project"`
	CodeDir  string `json:"code_dir"` // links resolved
	// TrustedAt is when the profile was trusted last, as it was then; Changed
	// says what is different now.
	TrustedAt *time.Time `json:"trusted_at,omitempty"`
	Changed   []string   `json:"changed"`
	Effects   []Effect   `json:"effects"`
	Files     []File     `json:"files"`

	seen *transfer.Survey // of the code directory; nil where it was not looked into
}

// Hash is the part of the key that is shown, and enough to name it.
func (s *Subject) Hash() string { return s.Key[:ShownDigits] }

// Since says what has changed since the profile was trusted.
func (s *Subject) Since() string {
	if s.TrustedAt == nil {
		return ""
	}
	return fmt.Sprintf("since it was trusted on %s, %s", s.TrustedAt.Local().Format("2006-01-02 15:04"), strings.Join(s.Changed, ", "))
}

// LookAt is Look for the profile at path.
func (g *Gate) LookAt(ctx context.Context, path string) (*Subject, error) {
	p, err := profiles.LoadToShow(path)
	if err != nil {
		return nil, err
	}
	if err := p.CheckProvider(); err != nil {
		return nil, err
	}
	return g.Look(ctx, p)
}

// Look works out what a decision about a profile covers and what the profile
// would do. It reads the profile's own files, below its project, and nothing
// else.
func (g *Gate) Look(ctx context.Context, p *profiles.Profile) (*Subject, error) {
	s := &Subject{
		Path: realPath(p.Path), Name: p.Name, Provider: p.Provider, Nodes: p.Nodes(), Command: p.Run.Command,
		Project: ProjectDir(p.Path), CodeDir: realPath(p.CodeDir()), Changed: []string{}, Effects: []Effect{},
	}
	m := &material{project: s.Project}
	m.add(KindProfile, s.Path, []byte(p.Source))
	asked := []string(nil)
	seen, err := g.codeFiles(ctx, p, s.CodeDir, m)
	if err != nil {
		return nil, err
	}
	if s.seen = seen; seen != nil {
		asked = seen.Asked
	}
	s.Files, s.Key = m.files, m.key(s.Path, s.CodeDir)
	s.Effects = effects(p, s, asked, m.outside)
	g.records.compare(s)
	return s, nil
}

// codeFiles adds the files of the code directory that say what is done. A
// directory outside the project is not looked into.
func (g *Gate) codeFiles(ctx context.Context, p *profiles.Profile, dir string, m *material) (*transfer.Survey, error) {
	for _, file := range []string{p.EnvironmentFile(), p.ImageFile()} {
		if file == "" {
			continue
		}
		if err := m.environment(file); err != nil {
			return nil, err
		}
	}
	if !within(dir, m.project) || !isDir(dir) {
		return nil, nil
	}
	seen, err := transfer.LookAtProject(ctx, dir, p.NotSent(g.state))
	if err != nil {
		return nil, err
	}
	for _, f := range seen.IgnoreFiles {
		m.add(KindIgnore, f.Path, f.Text)
	}
	return seen, nil
}

// material is what a key is made of.
type material struct {
	project string
	files   []File
	texts   map[string][]byte // by path
	outside []string          // environment files outside the project, which are not read
	bytes   int64             // of the files of the environment
}

func (m *material) add(kind, path string, text []byte) {
	if m.texts == nil {
		m.texts = map[string][]byte{}
	}
	sum := sha256.Sum256(text)
	m.files = append(m.files, File{Kind: kind, Path: path, Sum: hex.EncodeToString(sum[:])})
	m.texts[path] = text
}

// key is the SHA-256 of everything, each part with its length before it, so
// that no two different sets of files come to the same bytes.
func (m *material) key(profile, codeDir string) string {
	slices.SortStableFunc(m.files, func(a, b File) int { return strings.Compare(a.Kind+"\x00"+a.Path, b.Kind+"\x00"+b.Path) })
	h := sha256.New()
	part(h, "dlwb trust 1")
	part(h, profile)
	part(h, codeDir)
	part(h, fmt.Sprint(len(m.files)))
	for _, f := range m.files {
		part(h, f.Kind)
		part(h, filepath.ToSlash(f.Path))
		part(h, string(m.texts[f.Path]))
	}
	return hex.EncodeToString(h.Sum(nil))
}

func part(h hash.Hash, text string) {
	_ = binary.Write(h, binary.BigEndian, uint64(len(text)))
	_, _ = h.Write([]byte(text))
}
