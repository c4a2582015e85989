// Package dockerfile reads a Dockerfile as far as dlwb has to know it: what of the code
// it copies and what it begins from. It also tells what docker and podman mean by their
// last lines. It is pure.
package dockerfile

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/internal/pattern"
)

// Is reports whether a path is that of a Dockerfile, by its name.
func Is(name string) bool {
	base := path.Base(name)
	return strings.HasPrefix(base, "Dockerfile") || strings.HasSuffix(base, ".Dockerfile") || base == "Containerfile"
}

var (
	continued = pattern.New(`\\\s*\n(?:\s*#[^\n]*\n)*`)
	copies    = pattern.New(`(?i)^\s*(?:COPY|ADD)\s+(.*)$`)
	begins    = pattern.New(`(?i)^\s*FROM\s+(.*)$`)
	flagWord  = pattern.New(`^--[a-z]+(?:=\S*)?$`)
)

// lines are the instructions of a Dockerfile, each as one line.
func lines(text string) []string {
	return strings.Split(continued.ReplaceAllString(text, " "), "\n")
}

// Sources are the files of its context that a Dockerfile uses, as patterns of
// the shell; all of it where that can't be told.
func Sources(text string) []string {
	var all []string
	for _, line := range lines(text) {
		m := copies.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil || strings.Contains(m[1], "--from=") {
			if mounts(line) {
				return []string{"."}
			}
			continue
		}
		words := copyWords(m[1])
		for _, word := range words[:max(len(words)-1, 0)] {
			switch {
			case strings.Contains(word, "$"), strings.Contains(word, "**"):
				return []string{"."}
			case strings.Contains(word, "://"), strings.HasPrefix(word, "<<"), strings.HasPrefix(word, "git@"):
			default:
				all = append(all, "./"+strings.TrimLeft(path.Clean("/"+word), "/"))
			}
		}
	}
	return all
}

// mounts reports whether a line has a mount of the context: bind is what a mount is
// that does not say what it is.
func mounts(line string) bool {
	for word := range strings.FieldsSeq(line) {
		of, is := strings.CutPrefix(word, "--mount=")
		if !is {
			continue
		}
		kind, other := "bind", false
		for part := range strings.SplitSeq(of, ",") {
			key, value, _ := strings.Cut(part, "=")
			switch key {
			case "type":
				kind = value
			case "from":
				other = true
			}
		}
		if kind == "bind" && !other {
			return true
		}
	}
	return false
}

// copyWords are the words of an instruction behind its flags, in either form.
func copyWords(text string) []string {
	words := strings.Fields(text)
	for len(words) > 0 && flagWord.MatchString(words[0]) {
		words = words[1:]
	}
	var list []string
	if rest := strings.Join(words, " "); strings.HasPrefix(rest, "[") && json.Unmarshal([]byte(rest), &list) == nil {
		return list
	}
	return words
}

// Bases are the images that a Dockerfile begins from or copies from, each once. Stages of
// its own, scratch and names with variables are left out.
func Bases(text string) (all []string) {
	stages := map[string]bool{"scratch": true}
	add := func(name string) {
		if name != "" && !strings.Contains(name, "$") && !stages[strings.ToLower(name)] && !slices.Contains(all, name) && strings.Trim(name, "0123456789") != "" {
			all = append(all, name)
		}
	}
	for _, line := range lines(text) {
		if m := begins.FindStringSubmatch(line); m != nil {
			words := copyWords(m[1])
			if len(words) > 0 {
				add(words[0])
			}
			if len(words) > 2 && strings.EqualFold(words[1], "as") {
				stages[strings.ToLower(words[2])] = true
			}
			continue
		}
		for word := range strings.FieldsSeq(line) {
			if from, is := strings.CutPrefix(word, "--from="); is {
				add(from)
			}
		}
	}
	return all
}

// Among reports whether a path of the context is among sources, by itself or by one of
// the directories that it lies in.
func Among(sources []string, file string) bool {
	for _, s := range sources {
		s = strings.TrimPrefix(strings.TrimPrefix(s, "."), "/")
		if s == "" {
			return true
		}
		for at := file; at != "." && at != "/"; at = path.Dir(at) {
			if is, err := path.Match(s, at); is || err != nil {
				return true // what can't be matched here may be by the engine
			}
		}
	}
	return false
}
