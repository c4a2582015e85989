// Package trust decides whether a profile may do anything on this machine. A
// profile that nobody has trusted is parsed and shown, and nothing else: no
// program is started for it, no connection made, no file read outside its
// project.
//
// What is trusted is the profile together with the files that decide what it
// does: its ignore files, its requirements, its environment. The training code
// is not among them: whoever trusts a project runs its code. A decision is kept
// in the user's state directory and holds for exactly the bytes that were there.
package trust

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/dlwb/dlwb/internal/pattern"
	"github.com/dlwb/dlwb/internal/shellword"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/remote/transfer"
)

// Profile is a profile that was let through. Only a Gate makes one: the zero
// value holds none, and who asks it for one gets nil.
type Profile struct {
	p   *profiles.Profile
	own bool // the user's own, whatever lies beside it
}

// Profile is the profile itself; nil where none was let through.
func (t Profile) Profile() *profiles.Profile { return t.p }

// Gate is the one place where a profile from a file becomes one that is acted
// on.
type Gate struct {
	records  records
	state    string // the state directory, which no project's rules are read from
	accepted string // what --trust names; empty: nothing
}

// New makes the gate of a state directory. Nothing is written before Trust.
func New(state string) *Gate {
	return &Gate{records: records{filepath.Join(state, "trust")}, state: state}
}

// ShownDigits is how many digits of a key are shown, LeastDigits how many have
// to be given to name one.
const (
	ShownDigits = 32
	LeastDigits = 16
)

var hashForm = pattern.New(`^[0-9a-f]{16,64}$`)

// CheckHash says what is wrong with a text that should name a key.
func CheckHash(hash string) error {
	if !hashForm.MatchString(hash) {
		return fmt.Errorf("%q is no hash of a profile: it is %d to 64 digits 0-9 a-f, as dlwb trust shows them", hash, LeastDigits)
	}
	return nil
}

// Accept lets the profile with this hash through, until the program ends.
func (g *Gate) Accept(hash string) error {
	if err := CheckHash(hash); err != nil {
		return err
	}
	g.accepted = hash
	return nil
}

// Load reads a profile and lets it through when it is trusted; otherwise the
// error is *Untrusted.
func (g *Gate) Load(ctx context.Context, path string) (Profile, error) {
	p, _, err := g.LoadSeen(ctx, path)
	return p, err
}

// LoadSeen is Load with what was seen of the code directory to decide; nil where
// that was not looked into.
func (g *Gate) LoadSeen(ctx context.Context, path string) (Profile, *transfer.Survey, error) {
	p, err := profiles.LoadToShow(path)
	if err != nil {
		return Profile{}, nil, err
	}
	if err := p.CheckProvider(); err != nil {
		return Profile{}, nil, err
	}
	s, err := g.allows(ctx, p)
	if err != nil {
		return Profile{}, nil, err
	}
	p, err = p.Resolve()
	return Profile{p: p}, s.seen, err
}

// Check is Load for a profile whose text comes from a record.
func (g *Gate) Check(ctx context.Context, p *profiles.Profile) (Profile, error) {
	if _, err := g.allows(ctx, p); err != nil {
		return Profile{}, err
	}
	return Profile{p: p}, nil
}

// Still reports by its error that a profile which was let through would not be
// now: a file that decides what it does has changed.
func (g *Gate) Still(ctx context.Context, t Profile) error {
	if t.own {
		return nil
	}
	_, err := g.allows(ctx, t.p)
	return err
}

// allows says why a profile is not let through; nil when it is.
func (g *Gate) allows(ctx context.Context, p *profiles.Profile) (*Subject, error) {
	s, err := g.Look(ctx, p)
	if err != nil || s.Trusted || g.accepted != "" && strings.HasPrefix(s.Key, g.accepted) {
		return s, err
	}
	return nil, &Untrusted{Subject: s, Refused: g.accepted}
}

// Own lets through what the user has just put together here, as the wizard's
// draft is: it came from nobody else.
func (g *Gate) Own(p *profiles.Profile) Profile { return Profile{p: p, own: true} }

// Trust keeps the decision to trust a profile as it was looked at.
func (g *Gate) Trust(s *Subject) error {
	if err := g.records.add(s); err != nil {
		return fmt.Errorf("keep the trust in %s: %w", s.Path, err)
	}
	s.Trusted = true
	return nil
}

// TrustHash trusts the profile at path if its key, now, begins with hash: what
// somebody has seen is what is trusted.
func (g *Gate) TrustHash(ctx context.Context, path, hash string) (*Subject, error) {
	if err := CheckHash(hash); err != nil {
		return nil, err
	}
	s, err := g.LookAt(ctx, path)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(s.Key, hash) {
		return s, &Untrusted{Subject: s, Refused: hash}
	}
	return s, g.Trust(s)
}

// TrustWritten trusts a profile that dlwb itself has just written at path with
// this text, whatever lies there now.
func (g *Gate) TrustWritten(ctx context.Context, path string, text []byte) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("trust %s: %w", path, err)
	}
	p, err := profiles.ParseToShow(abs, text)
	if err != nil {
		return err
	}
	s, err := g.Look(ctx, p)
	if err != nil {
		return err
	}
	return g.Trust(s)
}

// Untrusted says that a profile is not trusted, and nothing was done.
type Untrusted struct {
	Subject *Subject
	Refused string // a hash that was given and is not the profile's
	Shown   bool   // the user has seen what it would do, and did not say yes
}

// Error implements error.
func (e *Untrusted) Error() string {
	why := "nobody has trusted it yet"
	if e.Subject.TrustedAt != nil {
		why = e.Subject.Since()
	}
	if e.Refused != "" {
		why = "its hash is " + e.Subject.Hash() + ", not " + e.Refused
	}
	return fmt.Sprintf("profile %s is not trusted: %s; nothing was run, asked or connected to", e.Subject.Path, why)
}

// Command is the command that trusts the profile as it was looked at.
func (e *Untrusted) Command() string {
	return "dlwb trust --hash " + e.Subject.Hash() + " " + shellword.Join(e.Subject.Path)
}

// Next is how to go on.
func (e *Untrusted) Next() string {
	return "look at what it does, then: " + e.Command() + ", or the same command with --trust=" + e.Subject.Hash()
}

// Of is the subject that an error says is not trusted; nil when it says
// something else.
func Of(err error) *Subject {
	var u *Untrusted
	if errors.As(err, &u) {
		return u.Subject
	}
	return nil
}
