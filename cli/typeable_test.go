package cli

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/dlwb/dlwb/profiles"
)

// What a page or a message tells people to type must be something that dlwb takes:
// the command, its flags and, where the line is whole, the number of its arguments.
func TestEveryCommandOfThePagesCanBeTyped(t *testing.T) {
	whole, words := 0, 0
	for name, text := range pages(t) {
		for _, line := range blockLines(text) {
			for _, command := range commandsOf(line) {
				whole++
				if err := takes(strings.Fields(command), true); err != nil {
					t.Errorf("%s: dlwb %s: %v", name, command, err)
				}
			}
		}
		for _, code := range regexp.MustCompile("`dlwb ([^`]+)`").FindAllStringSubmatch(text, -1) {
			words++
			if err := takes(strings.Fields(code[1]), false); err != nil {
				t.Errorf("%s: `dlwb %s`: %v", name, code[1], err)
			}
		}
	}
	if whole < 25 || words < 150 {
		t.Fatalf("only %d lines and %d commands within a sentence were found", whole, words)
	}
}

// The same for what the program itself says: "dlwb up --force does it" in an error.
func TestEveryCommandThatAMessageNamesCanBeTyped(t *testing.T) {
	said := regexp.MustCompile(`\bdlwb ([a-z]+)((?: [^\s;:,()"]+)*)`)
	flags := 0
	for _, text := range literals(t) {
		for _, m := range said.FindAllStringSubmatch(text.value, -1) {
			c := named(m[1])
			if c == nil {
				continue // "dlwb has"
			}
			before := ""
			for _, word := range strings.Fields(m[2]) {
				if word == "--" || word == "&&" || word == "or" || word == "and" {
					break // another command begins, or that of somebody else
				}
				value := c.Flag(strings.TrimPrefix(before, "--")) // what a flag has behind it is none
				before = word
				if strings.HasPrefix(word, "-") && word != "-" && (value == nil || value.Value.Type() == "bool") {
					flags++
					if err := flagOf(c, strings.TrimRight(word, ".'`")); err != nil {
						t.Errorf("%s: %q: %v", text.where, m[0], err)
					}
				}
			}
		}
	}
	if flags < 20 {
		t.Fatalf("only %d flags were found in messages", flags)
	}
}

// Profiles on the pages are ones that dlwb reads, whole or as a part of one.
func TestEveryProfileOfThePagesIsOne(t *testing.T) {
	whole := map[string]string{"name": "name: it\n", "run": "run: {command: train.py}\n"}
	n := 0
	for name, text := range pages(t) {
		for _, block := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```").FindAllStringSubmatch(text, -1) {
			if name == "settings.md" || strings.Contains(block[1], "\nsample: ") {
				continue // files of another kind, which have tests of their own
			}
			n++
			text := block[1] // a part of a profile may lack what the page has said before
			for key, line := range whole {
				if !regexp.MustCompile(`(?m)^` + key + `:`).MatchString(text) {
					text = line + text
				}
			}
			if !strings.Contains(text, "provider:") && strings.Contains(text, "data_volumes") {
				text = "provider: ec2\n" + text
			}
			if !strings.Contains(text, "provider:") && strings.Contains(text, "repository") {
				text = "provider: sagemaker\n" + text
			}
			var faults profiles.Errors
			if _, err := profiles.ParseToShow("dlwb.yaml", []byte(text)); err != nil && !errors.As(err, &faults) {
				t.Errorf("%s: %v\n%s", name, err, block[1])
			}
			for _, fault := range faults {
				if text == block[1] || !strings.Contains(fault.Error(), "it is missing") {
					t.Errorf("%s: %v\n%s", name, fault, block[1])
				}
			}
		}
	}
	if n < 15 {
		t.Fatalf("only %d profiles were found", n)
	}
}

// What is to be made by make can be made.
func TestEveryTargetOfThePagesIsInTheMakefile(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range pages(t) {
		if name == "engines.md" {
			continue // it is about the Makefiles of others
		}
		for _, m := range regexp.MustCompile("(?m)(?:`|^    )make ((?:[a-z0-9-]+ ?)+)").FindAllStringSubmatch(text, -1) {
			for _, target := range strings.Fields(m[1]) {
				if !regexp.MustCompile(`(?m)^`+target+`\b[^=\n]*:`).Match(makefile) && !regexp.MustCompile(`(?m)^[a-z -]*\b`+target+`\b[a-z -]*:`).Match(makefile) {
					t.Errorf("%s: make %s: there is no such target", name, target)
				}
			}
		}
	}
}

// pages are the README, what is in docs, and CONTRIBUTING.md, by their names.
func pages(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("../docs/*.md")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	all := map[string]string{}
	for _, name := range append(names, "../README.md", "../CONTRIBUTING.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(name)] = string(text)
	}
	return all
}

// blockLines are the lines of the blocks of code on a page, fenced or indented.
func blockLines(page string) (lines []string) {
	fenced := false
	for line := range strings.Lines(page) {
		switch {
		case strings.HasPrefix(line, "```"):
			fenced = !fenced
		case fenced || strings.HasPrefix(line, "    "):
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// commandsOf are the commands of dlwb in a line of shell, without the name.
func commandsOf(line string) (all []string) {
	line, _, _ = strings.Cut(line, " #")
	for _, part := range regexp.MustCompile(`;|&&|\|\s`).Split(line, -1) {
		if rest, is := strings.CutPrefix(strings.TrimPrefix(strings.TrimSpace(part), "$ "), "dlwb "); is {
			all = append(all, strings.TrimSpace(rest))
		}
	}
	return all
}

// takes tries words as the command line of dlwb; whole: also the number of arguments.
func takes(words []string, whole bool) error {
	var line []string
	for _, word := range words {
		switch {
		case strings.ContainsAny(word, "[]…") || strings.HasSuffix(word, "..."): // how it is used, not what is typed
		case regexp.MustCompile(`^[A-Z_|]+$`).MatchString(word):
			line = append(line, "1") // for a name as well as for a number
		default:
			line = append(line, word)
		}
	}
	root := (&app{}).root()
	if len(line) == 0 {
		return nil
	}
	c, rest, err := root.Find(line)
	if err != nil {
		return err
	}
	if c == root && !strings.HasPrefix(line[0], "-") {
		return fmt.Errorf("there is no command %s", line[0])
	}
	c.InitDefaultHelpFlag()
	if err := c.ParseFlags(rest); err != nil {
		if !whole && strings.Contains(err.Error(), "needs an argument") {
			return nil
		}
		return err
	}
	if !whole {
		return nil
	}
	return c.ValidateArgs(c.Flags().Args())
}

func named(command string) *cobra.Command {
	root := (&app{}).root()
	i := slices.IndexFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == command && !c.IsAdditionalHelpTopicCommand() })
	if i < 0 {
		return nil
	}
	return root.Commands()[i]
}

// flagOf says whether a command has the flag that a word is.
func flagOf(c *cobra.Command, word string) error {
	c.InitDefaultHelpFlag()
	word, _, _ = strings.Cut(word, "=")
	name, long := strings.CutPrefix(word, "--")
	if long && (c.Flag(name) != nil) {
		return nil
	}
	if !long && len(word) == 2 && (c.Flags().ShorthandLookup(word[1:]) != nil || c.InheritedFlags().ShorthandLookup(word[1:]) != nil) {
		return nil
	}
	return fmt.Errorf("%s has no flag %s", c.Name(), word)
}

type literal struct{ where, value string }

// literals are the texts in the source of the program, tests and rigs aside.
func literals(t *testing.T) (all []literal) {
	t.Helper()
	files := token.NewFileSet()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if n := d.Name(); n == "testdata" || n == "internal" || n != ".." && strings.HasPrefix(n, ".") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if l, is := n.(*ast.BasicLit); is && l.Kind == token.STRING {
				if value, err := strconv.Unquote(l.Value); err == nil {
					all = append(all, literal{files.Position(l.Pos()).String(), value})
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
