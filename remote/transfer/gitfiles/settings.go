package gitfiles

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/dlwb/dlwb/internal/plainfile"
)

// settingsMost bounds a file of settings.
const settingsMost = 1 << 20

// settings are the repository's own.
func (r Repo) settings() map[string]string {
	of := map[string]string{}
	readSettings(filepath.Join(r.common, "config"), of)
	if of["extensions.worktreeconfig"] == "true" {
		readSettings(filepath.Join(r.dir, "config.worktree"), of)
	}
	return of
}

// hashSize is the size of an object's name in bytes: SHA-1 or SHA-256.
func hashSize(of map[string]string) int {
	if strings.EqualFold(of["extensions.objectformat"], "sha256") {
		return 32
	}
	return 20
}

// UserExclude is the user's own list of ignored files, core.excludesFile, which need not
// be there. It holds below the top of the working tree. ByRepo is set where the
// repository's own settings name it.
func (r Repo) UserExclude() (path string, byRepo bool) {
	const key = "core.excludesfile"
	home, _ := os.UserHomeDir()
	path, byRepo = r.settings()[key]
	given := byRepo
	if !given {
		path, given = userSettings(home)[key]
	}
	if !given {
		if config := configHome(home); config != "" {
			return filepath.Join(config, "git", "ignore"), false
		}
		return "", false
	}
	if below, tilde := strings.CutPrefix(path, "~/"); tilde {
		path = filepath.Join(home, below)
	}
	if path == "" {
		return "", byRepo
	}
	return from(r.Top, path), byRepo
}

func configHome(home string) string {
	if dir := os.Getenv("XDG_CONFIG_HOME"); dir != "" {
		return dir
	}
	if home == "" {
		return ""
	}
	return filepath.Join(home, ".config")
}

// userSettings are those outside of any repository. A later file has the last word.
func userSettings(home string) map[string]string {
	of := map[string]string{}
	if none := os.Getenv("GIT_CONFIG_NOSYSTEM"); none == "" || none == "0" || none == "false" {
		readSettings("/etc/gitconfig", of)
	}
	if only, set := os.LookupEnv("GIT_CONFIG_GLOBAL"); set {
		readSettings(only, of)
		return of
	}
	if config := configHome(home); config != "" {
		readSettings(filepath.Join(config, "git", "config"), of)
	}
	if home != "" {
		readSettings(filepath.Join(home, ".gitconfig"), of)
	}
	return of
}

// readSettings adds what a file of settings says of sections without a name. Names are
// in lower case, "core.excludesfile"; includes are not followed.
func readSettings(file string, into map[string]string) {
	text, err := plainfile.Read(file, settingsMost)
	if err != nil {
		return
	}
	section := ""
	for rest := string(text); rest != ""; {
		var line string
		line, rest = logicalLine(rest)
		line = strings.TrimSpace(line)
		if after, is := strings.CutPrefix(line, "["); is {
			name, after, closed := strings.Cut(after, "]")
			if !closed || strings.Contains(name, `"`) {
				section = "" // one with a name may hold a bracket in it; none of those is asked for
				continue
			}
			section, line = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(after)
		}
		if section == "" || line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		key, value, given := strings.Cut(line, "=")
		if !given {
			value = "true"
			key, _, _ = strings.Cut(key, "#")
		}
		into[section+"."+strings.ToLower(strings.TrimSpace(key))] = valueOf(value)
	}
}

// logicalLine cuts off the first line, with those that a backslash at its end joins to
// it.
func logicalLine(text string) (line, rest string) {
	for {
		next, after, more := strings.Cut(text, "\n")
		next = strings.TrimSuffix(next, "\r")
		ends := len(next) - len(strings.TrimRight(next, `\`))
		if ends%2 == 0 || !more {
			return line + next, after
		}
		line, text = line+next[:len(next)-1], after
	}
}

// valueOf is a value without its quotes, escapes and comment.
func valueOf(raw string) string {
	var b strings.Builder
	quoted, end := false, 0 // what follows end is blank outside of quotes
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		switch {
		case c == '"':
			quoted = !quoted
			end = b.Len()
			continue
		case c == '\\' && i+1 < len(raw):
			i++
			switch c = raw[i]; c {
			case 'n':
				c = '\n'
			case 't':
				c = '\t'
			}
			b.WriteByte(c)
			end = b.Len()
			continue
		case !quoted && (c == '#' || c == ';'):
			return b.String()[:end]
		case !quoted && (c == ' ' || c == '\t'):
			if b.Len() > 0 {
				b.WriteByte(c)
			}
			continue
		}
		b.WriteByte(c)
		end = b.Len()
	}
	return b.String()[:end]
}
