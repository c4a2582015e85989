package hosts

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dlwb/dlwb/internal/plainfile"
)

// line is one directive of an ssh configuration.
type line struct {
	file string
	num  int
	key  string // in lower case
	args []string
	// included are the lines of the files that an Include names.
	included []line
}

func (l line) fault(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", l.file, l.num, fmt.Sprintf(format, args...))
}

// includeDepth is how deep Include may nest, as in OpenSSH.
const includeDepth = 16

// readConfigs reads the user's configuration and the system's, or the one file
// that is to be read instead of both. Files that are not there are empty.
func readConfigs(only string) ([]line, error) {
	if only != "" {
		return readConfig(only, sshDir(), 0)
	}
	user, err := readConfig(filepath.Join(sshDir(), "config"), sshDir(), 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	const system = "/etc/ssh"
	rest, err := readConfig(filepath.Join(system, "ssh_config"), system, 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	// What a Host line in the first file opened ends with that file.
	return append(user, append([]line{{key: "match", args: []string{"all"}}}, rest...)...), nil
}

func home() string {
	dir, err := os.UserHomeDir()
	if err != nil {
		return "."
	}
	return dir
}

func sshDir() string { return filepath.Join(home(), ".ssh") }

// sshMost bounds one of ssh's own files: known_hosts may hold many thousands.
const sshMost = 64 << 20

// readSSH reads one of ssh's own files. The null device stands for an empty one:
// it is what people write to have none.
func readSSH(path string) ([]byte, error) {
	if path == os.DevNull {
		return nil, nil
	}
	return plainfile.Read(path, sshMost)
}

// readConfig reads one file. Relative names of an Include lie in dir.
func readConfig(path, dir string, depth int) ([]line, error) {
	if depth > includeDepth {
		return nil, fmt.Errorf("%s: Include goes deeper than %d files: does it include itself?", path, includeDepth)
	}
	text, err := readSSH(path)
	if err != nil {
		return nil, err
	}
	var lines []line
	scanner := bufio.NewScanner(bytes.NewReader(text))
	for num := 1; scanner.Scan(); num++ {
		l := line{file: path, num: num}
		words, ok := splitWords(scanner.Text())
		if !ok {
			return nil, l.fault("a quotation mark is not closed")
		}
		if len(words) == 0 {
			continue
		}
		l.key, l.args = strings.ToLower(words[0]), words[1:]
		if len(l.args) == 0 {
			return nil, l.fault("%s needs a value", words[0])
		}
		if l.key == "include" {
			if l.included, err = readIncluded(l, dir, depth); err != nil {
				return nil, err
			}
		}
		lines = append(lines, l)
	}
	return lines, scanner.Err()
}

func readIncluded(l line, dir string, depth int) ([]line, error) {
	var all []line
	for _, pattern := range l.args {
		pattern = underHome(pattern)
		if !filepath.IsAbs(pattern) {
			pattern = filepath.Join(dir, pattern)
		}
		pattern = filepath.Clean(pattern)
		paths, err := filepath.Glob(pattern)
		if err != nil {
			return nil, l.fault("%q is no pattern of files: %v", pattern, err)
		}
		for _, path := range paths {
			if unmeant(pattern, path) {
				continue
			}
			lines, err := readConfig(path, dir, depth+1)
			if errors.Is(err, fs.ErrNotExist) { // a link that leads nowhere
				continue
			}
			if err != nil {
				return nil, l.fault("%v", err)
			}
			all = append(all, line{file: path, key: "include", included: lines})
		}
	}
	return all, nil
}

// unmeant reports whether what an Include found is none of its files for ssh: a * takes
// in no hidden file, such as what an editor or a desktop leaves there, and a directory
// is as good as empty.
func unmeant(pattern, path string) bool {
	name, found := strings.Split(filepath.ToSlash(pattern), "/"), strings.Split(filepath.ToSlash(path), "/")
	for i := range min(len(name), len(found)) {
		if strings.HasPrefix(found[i], ".") && !strings.HasPrefix(name[i], ".") {
			return true
		}
	}
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// underHome puts the home directory in the place of ~/.
func underHome(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(home(), rest)
	}
	return path
}

// splitWords splits a line as ssh does: at blanks, and at one = behind the key;
// quotation marks keep blanks together, and # begins a comment where a word
// would. A ProxyCommand is one word, as it stands: a shell reads it. It reports false
// when a quotation mark is not closed.
func splitWords(text string) (words []string, ok bool) {
	text = strings.TrimSpace(text)
	if i := strings.IndexAny(text, " \t="); i > 0 && text[0] != '#' {
		key, rest := text[:i], strings.TrimLeft(text[i:], " \t")
		rest = strings.TrimPrefix(rest, "=")
		words, text = append(words, key), rest
		if command := strings.TrimLeft(rest, " \t="); strings.EqualFold(key, "proxycommand") && command != "" {
			return append(words, command), true
		}
	}
	for {
		text = strings.TrimLeft(text, " \t\r")
		if text == "" || text[0] == '#' {
			return words, true
		}
		word, rest, closed := cutWord(text)
		if !closed {
			return nil, false
		}
		words, text = append(words, word), rest
	}
}

// cutWord cuts the first word off a text that begins with one.
func cutWord(text string) (word, rest string, closed bool) {
	var b strings.Builder
	var quote byte
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && i+1 < len(text) && strings.IndexByte(`"'\ `, text[i+1]) >= 0:
			i++
			b.WriteByte(text[i])
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote == 0 && (c == ' ' || c == '\t'):
			return b.String(), text[i:], true
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), "", quote == 0
}
