package planning

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/dlwb/dlwb/cloud/about"
	"github.com/dlwb/dlwb/cloud/providers"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/remote/engine"
	"github.com/dlwb/dlwb/workbench/event"
)

// Draft is a profile that a person is putting together. Every field is text as
// a profile has it; empty ones are left out.
type Draft struct {
	Dir         string // where the profile and the code are
	Name        string
	Provider    string
	Region      string // or several, with commas
	Instance    string
	Count       string
	Spot        bool
	Fallback    bool   // on demand when there is no spare capacity
	Image       string // of machines that have a type
	Disk        string
	Environment string // "system" or "venv"
	File        string // requirements file of a venv
	Engine      string
	Command     string
	Results     string // paths, with commas
	Budget      string
	Lifetime    string
	Idle        string
	// Own are the values of keys that only some providers have, by key.
	Own map[string]string
}

// SetOwn sets one of Own. Who has a copy of the draft keeps what it had.
func (d *Draft) SetOwn(key, value string) {
	own := maps.Clone(d.Own)
	if own == nil {
		own = map[string]string{}
	}
	own[key] = value
	d.Own = own
}

// NewDraft begins a draft with what is found in a directory; notes say what
// that was.
func (m *Maker) NewDraft(dir string) (d Draft, notes []string, err error) {
	if d.Dir, err = filepath.Abs(dir); err != nil {
		return d, nil, err
	}
	d.Provider, d.Count, d.Environment, d.Engine = providers.Default().Name, "1", "system", engine.Auto
	d.Lifetime, d.Idle = "1d", "1h"
	p, notes, err := profiles.Detect(d.Dir, EnvironmentKinds)
	if err != nil {
		return d, []string{err.Error()}, nil // a person can say what could not be found
	}
	d.Name, d.Command, d.Engine = p.Name, p.Run.Command, p.Run.Engine
	d.Environment, d.File = p.Environment.Kind, p.Environment.File
	d.Results = strings.Join(p.Results.Paths, ", ")
	return d, notes, nil
}

// Text is the profile that a draft comes to. The error is profiles.Errors when
// a value is wrong; the profile's text is returned with it.
func (d Draft) Text() (string, error) {
	p, text, err := d.parse()
	if err != nil {
		return text, err
	}
	return string(profiles.Write(p)), nil
}

// parse writes a draft as a profile and reads that: what a draft may hold is
// what a profile may hold, and nothing else decides it.
func (d Draft) parse() (*profiles.Profile, string, error) {
	var b strings.Builder
	line := func(depth int, key, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s%s: %s\n", strings.Repeat("  ", depth), key, value)
		}
	}
	group := func(key string, rows ...[2]string) {
		given := false
		for _, r := range rows {
			given = given || r[1] != ""
		}
		if !given {
			return
		}
		b.WriteString(key + ":\n")
		for _, r := range rows {
			line(1, r[0], r[1])
		}
	}
	provider := providers.Named(d.Provider)
	machines := func(key, value string) [2]string { return [2]string{key, onlyIf(provider.Has("machines."+key), value)} }
	limits := func(key, value string) [2]string {
		return [2]string{key, onlyIf(provider.Traits.Leased, profiles.Quote(value))}
	}
	line(0, "name", profiles.Quote(d.Name))
	line(0, "provider", profiles.Quote(d.Provider))
	rows := append(d.ownRows(provider), machines("region", listText(d.Region)), machines("instance", profiles.Quote(d.Instance)),
		[2]string{"count", d.Count}, machines("spot", onlyIf(d.Spot, "true")), machines("spot_fallback", onlyIf(d.Spot && d.Fallback, "true")),
		machines("image", profiles.Quote(d.Image)), machines("disk", profiles.Quote(d.Disk)))
	group("machines", rows...)
	if d.Environment == "venv" {
		group("environment", [2]string{"venv", profiles.Quote(d.File)})
	} else {
		line(0, "environment", profiles.Quote(d.Environment))
	}
	group("run", [2]string{"engine", profiles.Quote(d.Engine)}, [2]string{"command", profiles.Quote(d.Command)})
	group("results", [2]string{"paths", listText(d.Results)})
	group("limits", limits("budget", d.Budget), limits("lifetime", d.Lifetime), limits("idle", d.Idle))
	p, err := profiles.Parse(d.path(), []byte(b.String()))
	return p, b.String(), err
}

// ownRows are the keys that only some providers have, as rows of the profile.
func (d Draft) ownRows(p about.Provider) (rows [][2]string) {
	for _, o := range p.Options {
		if value := strings.TrimSpace(d.Own[o.Key]); value != "" {
			rows = append(rows, [2]string{o.Name(), ownText(o.Kind, value)})
		}
	}
	return rows
}

// ownText writes what a person typed as the value of an option. What is YAML already,
// in brackets, stays as it is.
func ownText(kind about.Kind, value string) string {
	switch kind {
	case about.Word:
		return profiles.Quote(value)
	case about.Networks, about.Words, about.HostList:
		if !strings.HasPrefix(value, "[") {
			return listText(value)
		}
	case about.Pairs, about.HostKeys:
		if !strings.HasPrefix(value, "{") {
			return "{" + value + "}"
		}
	}
	return value
}

// onlyIf is a text, or nothing.
func onlyIf(is bool, text string) string {
	if is {
		return text
	}
	return ""
}

func (d Draft) path() string { return filepath.Join(d.Dir, profiles.FileName) }

// listText writes what a person listed with commas as a list.
func listText(text string) string {
	var words []string
	for _, word := range splitList(text) {
		switch word = strings.TrimSpace(word); {
		case word == "":
		case strings.HasPrefix(word, "{"): // a mapping, such as {host: gpu1, gpus: [0, 1]}
			words = append(words, word)
		default:
			words = append(words, profiles.Quote(word))
		}
	}
	if len(words) == 0 {
		return ""
	}
	return "[" + strings.Join(words, ", ") + "]"
}

// splitList splits at the commas that are in no brackets: gpu[1,3] is one word.
func splitList(text string) (words []string) {
	depth, from := 0, 0
	for i, r := range text {
		switch r {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case ',':
			if depth <= 0 {
				words, from = append(words, text[from:i]), i+1
			}
		}
	}
	return append(words, text[from:])
}

// PlanDraft is the plan of a draft. Nothing is written.
func (m *Maker) PlanDraft(ctx context.Context, d Draft) (*Plan, error) {
	p, _, err := d.parse()
	if err != nil {
		return nil, err
	}
	return m.trusted(ctx, m.owner.Gate.Own(p))
}

// SaveDraft writes the profile of a draft into its directory and returns its
// path. A profile that is there is not replaced. It is trusted as it was
// written, and one of Home's from then on.
func (m *Maker) SaveDraft(d Draft) (string, error) {
	text, err := d.Text()
	if err != nil {
		return "", err
	}
	f, err := os.OpenFile(d.path(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return "", &event.Fault{What: "write the profile", Node: -1, Why: d.path() + " is there already",
			Next: "move it away, or choose another directory"}
	}
	if err != nil {
		return "", fmt.Errorf("write the profile: %w", err)
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = m.owner.Gate.TrustWritten(context.Background(), d.path(), []byte(text))
	}
	if err == nil {
		m.owner.Remember(&Plan{Path: d.path(), Name: d.Name, Provider: d.Provider})
	}
	return d.path(), err
}
