// Package recipe holds what tools print oddly, as data: rules that put an odd
// line into plain words, words that only one tool uses, and names of columns.
// Each recipe has its sample, and what is in it. A user's own have the same form.
package recipe

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Recipe is what one tool prints oddly.
type Recipe struct {
	Name string `yaml:"name"`
	// Source says where the format is from: a file of the tool, a page, a run.
	Source string `yaml:"source"`
	Lines  []Line `yaml:"lines"`
	// Words are words of names by what they say: score, weak, measure, never.
	Words map[string]string `yaml:"words"`
	// Names are names as printed, and as they are shown.
	Names map[string]string `yaml:"names"`
	// Columns are names of columns in files, and as they are shown.
	Columns map[string]string `yaml:"columns"`
	// Sample is printed by the tool, and Want what a careful reader finds in it: a
	// line for each series, its name, axis and points.
	Sample string `yaml:"sample"`
	Want   string `yaml:"want"`
}

// Line is a rule for one kind of line. What it does is exactly one of Read, Skip
// and Block.
type Line struct {
	// Match is a regular expression (RE2) that is looked for in a line, behind its
	// time and level.
	Match string `yaml:"match"`
	// Read is what stands there in plain words instead of the match; $1 or ${name}
	// is a group, and sum($1) what the numbers of a group come to, between which commas stand.
	Read *string `yaml:"read"`
	// Skip passes over the "line", or over it and the "next" too.
	Skip string `yaml:"skip"`
	// Block says what the indented lines below are: a "summary" of what was said,
	// averages over the "whole" run, or a "result" in YAML.
	Block string `yaml:"block"`
}

// What a line that a rule matches is.
const (
	SkipLine     = "line"
	SkipNext     = "next"
	BlockSummary = "summary"
	BlockWhole   = "whole"
	BlockResult  = "result"
)

// Kinds are the words for what a word of a name says.
var Kinds = []string{"score", "weak", "measure", "never"}

//go:embed recipes/*.yaml
var files embed.FS

// Built are the recipes that dlwb brings.
func Built() []Recipe {
	recipes, err := Load(files, "recipes")
	if err != nil {
		panic(err) // they are part of the program, and tested
	}
	return recipes
}

// mostBytes bounds a recipe: its sample is the most of it.
const mostBytes = 256 << 10

// Load reads the recipes (*.yaml) of a folder; one that is not there has none.
// Files that are wrong are told of, all at once, and left out.
func Load(in fs.FS, folder string) ([]Recipe, error) {
	names, err := fs.Glob(in, path.Join(folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var all []Recipe
	var wrong []error
	for _, name := range names {
		text, err := readBounded(in, name)
		if err == nil {
			var one Recipe
			if one, err = Parse(text); err == nil {
				all = append(all, one)
			}
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("the recipe %s: %w", name, err))
		}
	}
	return all, errors.Join(wrong...)
}

func readBounded(in fs.FS, name string) ([]byte, error) {
	f, err := in.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostBytes+1))
	if err == nil && len(text) > mostBytes {
		err = fmt.Errorf("it has more than %d bytes", mostBytes)
	}
	return text, err
}

// Parse reads one recipe. Unknown keys are errors.
func Parse(text []byte) (Recipe, error) {
	var r Recipe
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&r); err != nil {
		return r, err
	}
	return r, r.check()
}

// check says what is wrong with a recipe.
func (r *Recipe) check() error {
	if r.Name == "" {
		return errors.New("it has no name")
	}
	for i, l := range r.Lines {
		if err := l.check(); err != nil {
			return fmt.Errorf("lines[%d]: %w", i, err)
		}
	}
	for kind := range r.Words {
		if !slices.Contains(Kinds, kind) {
			return fmt.Errorf("words: %q is none of %s", kind, strings.Join(Kinds, ", "))
		}
	}
	return nil
}

func (l *Line) check() error {
	if _, err := regexp.Compile(l.Match); err != nil {
		return fmt.Errorf("match: %w", err)
	}
	does := 0
	for _, set := range []bool{l.Read != nil, l.Skip != "", l.Block != ""} {
		if set {
			does++
		}
	}
	switch {
	case l.Match == "":
		return errors.New("it has no match")
	case does != 1:
		return errors.New("it wants one of read, skip and block")
	case l.Skip != "" && l.Skip != SkipLine && l.Skip != SkipNext:
		return fmt.Errorf("skip: %q is neither %s nor %s", l.Skip, SkipLine, SkipNext)
	case l.Block != "" && l.Block != BlockSummary && l.Block != BlockWhole && l.Block != BlockResult:
		return fmt.Errorf("block: %q is none of %s, %s and %s", l.Block, BlockSummary, BlockWhole, BlockResult)
	}
	return nil
}
