package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dlwb/dlwb/internal/nearword"
)

// asksJSON looks for --json before the flags are read, so that a fault of the
// command line is answered in the form that was asked for.
func asksJSON(args []string) bool {
	for _, arg := range args {
		switch arg {
		case "--":
			return false
		case "--json", "--json=true":
			return true
		}
	}
	return false
}

// usageArgs says what is wrong with a command's arguments, as a usage error.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if check == nil || check(c, args) == nil {
			return nil
		}
		got := "no arguments"
		if len(args) > 0 {
			got = fmt.Sprintf("%q", args)
		}
		return usageError{fmt.Errorf("%s got %s; usage: %s", c.Name(), got, c.UseLine())}
	}
}

// rootArgs takes no arguments: a word there is a command that does not exist.
func rootArgs(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return unknownCommand(root, args[0])
}

func unknownCommand(root *cobra.Command, word string) error {
	meant := nearestCommand(root, word)
	if meant != "" {
		meant = "; did you mean " + meant + "?"
	}
	return usageError{fmt.Errorf("there is no command %q%s; dlwb --help lists them", word, meant)}
}

// nearestCommand is the command that a word comes near to, or that does what
// people call by this word elsewhere.
func nearestCommand(root *cobra.Command, word string) string {
	var names []string
	for _, c := range root.Commands() {
		if c.Hidden {
			continue
		}
		if slices.Contains(c.SuggestFor, strings.ToLower(word)) {
			return c.Name()
		}
		names = append(names, c.Name())
	}
	return nearword.Nearest(word, names)
}

// suggestFor are words that people type for a command that is called
// otherwise here.
var suggestFor = map[string][]string{
	"ls": {"list", "ps", "status", "clusters"}, "down": {"destroy", "delete", "teardown", "terminate"},
	"up": {"create", "provision"}, "run": {"train", "launch", "start", "submit"}, "stop": {"kill", "cancel"},
	"attach": {"watch", "resume"}, "ssh": {"shell", "login"}, "forward": {"jupyter", "tensorboard", "tunnel"},
	"pull": {"fetch", "download"}, "sync": {"push", "upload"}, "logs": {"log", "tail"}, "compare": {"diff"}, "rerun": {"repeat", "again", "reproduce"}, "rm": {"remove", "prune", "clean"}, "compact": {"vacuum"}, "doctor": {"check"}, "init": {"new"}, "import": {"convert", "migrate"},
}

// flagFault says what is wrong with a flag, with the nearest right one.
func flagFault(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		if f := invalid.GetFlag(); valuesOf[f.Value.Type()] != "" {
			err = fmt.Errorf("--%s takes %s, not %q", f.Name, valuesOf[f.Value.Type()], invalid.GetValue())
		}
	}
	if !errors.As(err, &unknown) {
		return usageError{fmt.Errorf("%w; %s --help lists the flags", err, c.CommandPath())}
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	word := unknown.GetSpecifiedName()
	meant := nearword.Nearest(word, names)
	if meant != "" {
		meant = "; did you mean --" + meant + "?"
	}
	dashes := "--"
	if len(word) == 1 {
		dashes = "-"
	}
	return usageError{fmt.Errorf("%s has no flag %s%s%s; %s --help lists them", c.CommandPath(), dashes, word, meant, c.CommandPath())}
}

// valuesOf are the values of flags by their type, as a person says it.
var valuesOf = map[string]string{"int": "a whole number", "intSlice": "whole numbers with commas between them", "float64": "a number",
	"bool": "true or false, or stands alone", "duration": "a time such as 90s or 2h30m"}

// choices are the flags that take one of some words.
var choices = []struct {
	flag  string
	words []string
}{
	{"theme", []string{"auto", "dark", "light"}},
	{"glyphs", []string{"auto", "unicode", "ascii"}},
}

// exclusive is how cobra marks flags of which one may be given; it names them in no
// words for people.
const exclusive = "cobra_annotation_mutually_exclusive"

// checkFlags holds what flags say against what the command can do.
func (a *app) checkFlags(c *cobra.Command, _ []string) error {
	for _, o := range choices {
		if f := c.Flags().Lookup(o.flag); f != nil && !slices.Contains(o.words, f.Value.String()) {
			return usageError{fmt.Errorf("--%s %s: it is one of %s", o.flag, f.Value, strings.Join(o.words, ", "))}
		}
	}
	if c.ValidateFlagGroups() != nil {
		var given []string
		c.Flags().Visit(func(f *pflag.Flag) {
			if f.Annotations[exclusive] != nil {
				given = append(given, "--"+f.Name)
			}
		})
		return usageError{fmt.Errorf("%s exclude each other: give one of them", strings.Join(given, " and "))}
	}
	if why := textOnly(c); a.json && why != "" {
		return usageError{fmt.Errorf("%s has no --json: %s", c.CommandPath(), why)}
	}
	return nil
}
