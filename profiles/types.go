package profiles

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/dlwb/dlwb/cloud/providers"
	"github.com/dlwb/dlwb/internal/nearword"
	"github.com/dlwb/dlwb/internal/pattern"
	"github.com/dlwb/dlwb/remote/engine"
)

// Type is a kind of value.
type Type struct {
	Name string // "size"
	Doc  string // how it is written
	// Schema is the JSON schema of a value.
	Schema func(*Field) schema

	// parse reads a value into the place of the field; it reports what is
	// wrong and then leaves the place as it is.
	parse func(*decoder, *Field, *yaml.Node, any)
	// format gives a value as YAML; empty for one that is not set.
	format func(*Field, any) string
}

type schema = map[string]any

// scalarType makes a type of one value out of two functions between a text and
// a Go value: read says what is wrong with a text, write gives the text back.
func scalarType[T any](name, doc string, sch func(*Field) schema,
	read func(*Field, string) (T, flaw), write func(*Field, T) string) *Type {
	return &Type{
		Name: name, Doc: doc, Schema: sch,
		parse: func(d *decoder, f *Field, n *yaml.Node, into any) {
			text, ok := d.scalar(f.Key, n)
			if !ok {
				return
			}
			v, fl := read(f, text)
			if fl.why != "" {
				d.flaw(f.Key, n, fl)
				return
			}
			*into.(*T) = v
		},
		format: func(f *Field, from any) string { return write(f, *from.(*T)) },
	}
}

// flaw is what is wrong with a value.
type flaw struct {
	why, nearest, next string
	offset, width      int // of the fault within the value, in characters
}

func stringSchema(pattern string) func(*Field) schema {
	return func(*Field) schema {
		if pattern == "" {
			return schema{"type": "string", "minLength": 1}
		}
		return schema{"type": "string", "pattern": pattern}
	}
}

func asYAML(_ *Field, v string) string { return yamlText(v) }

// textOf makes a type of text from a check.
func textOf(name, doc, pattern string, check func(f *Field, text string) flaw) *Type {
	return scalarType(name, doc, stringSchema(pattern), func(f *Field, text string) (string, flaw) {
		if fl := oneLine(text); fl.why != "" {
			return "", fl
		}
		return text, check(f, text)
	}, asYAML)
}

// foldedBy says how a text of several lines becomes one. Lines that are indented further
// than the first keep their ends, whatever folds the text.
func foldedBy(text string) string {
	if strings.Contains(text, "\n ") || strings.Contains(text, "\n\t") {
		return "write it on one line, or fold it with >- and indent its lines alike: one that is indented further is no part of the line above it"
	}
	return "write it on one line, or fold it with >- instead of |"
}

func oneLine(text string) flaw {
	switch {
	case strings.TrimSpace(text) == "":
		return flaw{why: "it is empty", next: "give a value, or leave the key out"}
	case strings.Contains(text, "\n"):
		return flaw{why: "it has more than one line", next: foldedBy(text)}
	case !printable(strings.ReplaceAll(text, "\t", " ")):
		return flaw{why: "it has a character that can't be printed", next: "remove it"}
	case strings.HasPrefix(text, "“") || strings.HasPrefix(text, "‘"):
		return flaw{why: "these quotes are typographic, and for YAML they are part of the value",
			nearest: strings.Trim(text, "“”„‘’‚"), next: `or use " or '`}
	}
	return flaw{}
}

var (
	nameForm   = pattern.New(`^[a-z0-9][a-z0-9-]{0,39}$`)
	regionForm = pattern.New(`^[a-z]{2,3}(-[a-z]+)+-[0-9]+$`)
	typeForm   = pattern.New(`^(ml\.)?[a-z][a-z0-9-]*\.[a-z0-9-]+$`)
	modelForm  = pattern.New(`^[A-Za-z0-9][A-Za-z0-9 _-]{0,31}$`)
	bucketForm = pattern.New(`^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/.*)?$`)
)

var (
	textType = textOf("text", "one line", "", func(*Field, string) flaw { return flaw{} })
	wordType = textOf("word", "one word without spaces", `^\S+$`, func(_ *Field, text string) flaw {
		if strings.ContainsAny(text, " \t") {
			return flaw{why: "it has a space", next: "give one path or name, without arguments"}
		}
		return flaw{}
	})
	nameType = textOf("name", "1 to 40 small letters, digits and dashes; the first is no dash", nameForm.String(), func(_ *Field, text string) flaw {
		if nameForm.MatchString(text) {
			return flaw{}
		}
		return flaw{why: "a name has 1 to 40 small letters, digits and dashes, and does not begin with a dash", nearest: validName(text)}
	})
	choiceType = scalarType("choice", "one of the words listed", func(f *Field) schema {
		return schema{"enum": f.Allowed}
	}, func(f *Field, text string) (string, flaw) {
		if slices.Contains(f.Allowed, text) {
			return text, flaw{}
		}
		offered := f.Allowed
		if f.Offered != nil {
			offered = f.Offered
		}
		fl := flaw{why: "there is no such " + last(f.Key), nearest: nearword.Nearest(text, f.Allowed), next: "one of " + strings.Join(offered, ", ")}
		if meant := otherWords[nearword.Fold(text)]; slices.Contains(f.Allowed, meant) {
			fl.nearest = meant
		}
		return "", fl
	}, asYAML)
	commandType = textOf("command", "words as in a shell; quotes group, nothing is expanded", "", func(_ *Field, text string) flaw {
		if before, _, found := strings.Cut(text, "${env:"); found {
			return flaw{why: "references are known in run.env only", next: "set a variable there; the command finds it in its environment", offset: utf8.RuneCountInString(before), width: 6}
		}
		return wordsFlaw(text)
	})
	instanceType = textOf("instance type", "the provider's name of the type, or a mapping", `^\S+$`, func(_ *Field, text string) flaw {
		if !typeForm.MatchString(text) {
			return flaw{why: "this is no instance type", next: "a type is like g5.xlarge; or say what is needed: {gpu: A10G, gpus: 1}"}
		}
		return flaw{}
	})
	s3Type = textOf("S3 address", "s3://bucket/prefix", `^s3://`, func(_ *Field, text string) flaw {
		if !bucketForm.MatchString(text) {
			return flaw{why: "this is no address in S3", next: "write s3://bucket/prefix"}
		}
		return flaw{}
	})
	scriptType = scalarType("lines", "several lines, written with |", stringSchema(""), func(_ *Field, text string) (string, flaw) {
		switch {
		case strings.TrimSpace(text) == "":
			return "", flaw{why: "it is empty", next: "give it lines with |, or leave the key out"}
		case !printable(strings.NewReplacer("\t", " ", "\n", " ").Replace(text)):
			return "", flaw{why: "it has a character that can't be printed", next: "remove it"}
		}
		return text, flaw{}
	}, func(_ *Field, v string) string {
		if v == "" {
			return ""
		}
		return strconv.Quote(v)
	})
	pathType = textOf("path", "relative, with /, and not out of its directory", "", func(_ *Field, text string) flaw { return insidePath(text) })
	homeType = textOf("inner directory", "relative to the profile and inside its directory, with /; no part of it is hidden", "", func(_ *Field, text string) flaw { return homePath(text) })
	dirType  = textOf("directory", "relative to the profile, or absolute", "", func(_ *Field, text string) flaw { return plainPath(text) })
)

// plainPath checks a path in the form that every system understands.
func plainPath(text string) flaw {
	switch {
	case strings.Contains(text, `\`):
		return flaw{why: "a path is written with /", nearest: strings.ReplaceAll(text, `\`, "/")}
	case strings.HasPrefix(text, "~"):
		return flaw{why: "~ is not expanded", next: "write the path out"}
	case strings.Contains(text, "${"):
		return flaw{why: "variables are not expanded in paths", next: "write the path out"}
	}
	return flaw{}
}

// insidePath checks a path that must not leave the code directory: what is
// fetched from a node is written below one directory here.
func insidePath(text string) flaw {
	if fl := plainPath(text); fl.why != "" {
		return fl
	}
	clean := path.Clean(text)
	switch {
	case strings.HasPrefix(text, "/"):
		return flaw{why: "it is absolute", nearest: strings.TrimLeft(clean, "/"), next: "paths of results are relative to the code directory"}
	case clean == ".." || strings.HasPrefix(clean, "../"):
		return flaw{why: "it leaves the code directory", next: "name a directory inside it"}
	case strings.ContainsAny(text, "*?["):
		return flaw{why: "wildcards are not known here", nearest: path.Dir(text[:strings.IndexAny(text, "*?[")]+"x") + "/", next: "name the file or the directory"}
	}
	return flaw{}
}

// homePath checks a directory that files from a node are written to. What is
// hidden in a project (.git, .vscode …) may be run by others.
func homePath(text string) flaw {
	if fl := plainPath(text); fl.why != "" {
		return fl
	}
	clean := path.Clean(text)
	switch {
	case strings.HasPrefix(text, "/"):
		return flaw{why: "it is absolute", next: "name a directory inside the profile's, such as results/{run}; dlwb pull RUN DIR brings results anywhere"}
	case clean == ".." || strings.HasPrefix(clean, "../"):
		return flaw{why: "it leaves the directory of the profile", next: "name a directory inside it, such as results/{run}; dlwb pull RUN DIR brings results anywhere"}
	case clean == ".":
		return flaw{why: "it is the directory of the profile itself", next: "name a directory inside it, such as results/{run}"}
	}
	for part := range strings.SplitSeq(clean, "/") {
		if strings.HasPrefix(part, ".") {
			return flaw{why: part + " is hidden", next: "name a directory that can be seen, such as results/{run}"}
		}
	}
	return flaw{}
}

// wordsFlaw is what a command has that a shell would act upon, and dlwb does not.
func wordsFlaw(command string) flaw {
	_, err := engine.Split(command)
	var bad *engine.SyntaxError
	if !errors.As(err, &bad) {
		return flaw{}
	}
	why, next, _ := strings.Cut(bad.Why, ": ")
	return flaw{why: why, next: next, offset: bad.Column - 1, width: 1}
}

// otherWords are what people write for a choice that has another name here.
var otherWords = func() map[string]string {
	words := engine.OtherWords()
	for _, p := range providers.All {
		for _, word := range p.Also {
			words[word] = p.Name
		}
	}
	return words
}()

var flagType = scalarType("switch", "true or false", func(*Field) schema { return schema{"type": "boolean"} },
	func(_ *Field, text string) (bool, flaw) {
		switch strings.ToLower(text) {
		case "true":
			return true, flaw{}
		case "false":
			return false, flaw{}
		case "yes", "on", "1":
			return false, flaw{why: "a switch is true or false", nearest: "true"}
		case "no", "off", "0":
			return false, flaw{why: "a switch is true or false", nearest: "false"}
		}
		return false, flaw{why: "a switch is true or false", next: "write true or false"}
	}, func(_ *Field, v bool) string { return strconv.FormatBool(v) })

var countType = scalarType("count", "a whole number", func(f *Field) schema {
	return schema{"type": "integer", "minimum": f.Min, "maximum": f.Max}
}, func(f *Field, text string) (int, flaw) {
	next := fmt.Sprintf("write a whole number from %d to %d, such as %s", f.Min, f.Max, f.Example)
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return 0, flaw{why: "this is no whole number", next: next}
	case len(text) > 1 && (text[0] == '0' || text[0] == '+'):
		return 0, flaw{why: "a number begins with its first digit that counts", nearest: strconv.Itoa(n)}
	case int64(n) < f.Min:
		return 0, flaw{why: fmt.Sprintf("the least is %d", f.Min), next: next}
	case int64(n) > f.Max:
		return 0, flaw{why: fmt.Sprintf("the most is %d", f.Max), next: next}
	}
	return n, flaw{}
}, func(_ *Field, v int) string { return strconv.Itoa(v) })

var durationType = scalarType("duration", "a number with d, h, m or s, also several: 12h, 1d12h, 90s", func(*Field) schema {
	return schema{"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(d|h|m|s|ms))+$`}
}, func(f *Field, text string) (time.Duration, flaw) {
	v, fl := readDuration(text)
	low, high := time.Duration(f.Min)*time.Second, time.Duration(f.Max)*time.Second
	switch {
	case fl.why != "" && fl.nearest != "":
	case fl.why != "":
		fl.next = "write a number and d, h, m or s, such as " + f.Example
	case v < low:
		fl = flaw{why: "the least is " + writeDuration(low), next: "such as " + f.Example}
	case v > high:
		fl = flaw{why: "the most is " + writeDuration(high), next: "such as " + f.Example}
	}
	return v, fl
}, func(_ *Field, v time.Duration) string { return writeDuration(v) })
