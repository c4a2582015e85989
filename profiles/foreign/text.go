package foreign

import (
	"bytes"
	"errors"
	"io"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"
)

// documents are the mappings of a file, which may have several.
func documents(text []byte) (all []*yaml.Node, err error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var doc yaml.Node
		if err := d.Decode(&doc); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		if len(doc.Content) == 1 && doc.Content[0].Kind == yaml.MappingNode {
			all = append(all, doc.Content[0])
		}
	}
}

// others names what else is in a file of several documents, of which one was taken.
// One in front that has only a name is that of all of them.
func (f *file) others(all []*yaml.Node, taken int) {
	for i, doc := range all {
		switch name := child(doc, "name"); {
		case i == taken:
		case i < taken && len(doc.Content) == 2 && name != nil:
			if f.out["name"] == nil {
				f.named(f.text(name))
			}
		default:
			f.note(doc.Line, "a further part of the file", "a profile has one task: make one of each, and chain them by after:")
		}
	}
}

// uncommented is a text without the comments that JSON of editors has, in place of
// which blanks stand: lines stay where they are.
func uncommented(name string, text []byte) []byte {
	if path.Ext(name) != ".json" && !bytes.HasPrefix(bytes.TrimSpace(text), []byte("//")) && !bytes.HasPrefix(bytes.TrimSpace(text), []byte("/*")) {
		return text
	}
	out := bytes.Clone(text)
	for i := 0; i < len(out); i++ {
		end := ""
		switch {
		case out[i] == '"':
			i = closing(out, i)
			continue
		case bytes.HasPrefix(out[i:], []byte("//")):
			end = "\n"
		case bytes.HasPrefix(out[i:], []byte("/*")):
			end = "*/"
		case out[i] == '\t': // YAML takes none in front of some values
			out[i] = ' '
			continue
		default:
			continue
		}
		n := strings.Index(string(out[i:]), end)
		if n < 0 {
			n = len(out) - i - len(end)
		}
		for stop := min(i+n+len(end), len(out)); i < stop; i++ {
			if out[i] != '\n' && out[i] != '\r' {
				out[i] = ' '
			}
		}
		i--
	}
	return out
}

// closing is where a text in quotes ends.
func closing(text []byte, i int) int {
	for i++; i < len(text) && text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i
}
