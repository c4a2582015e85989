package gitread

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/dlwb/dlwb/internal/pattern"
)

// plainSettings are settings that say how files are compared, and can name no
// program and no place.
var plainSettings = []string{"core.autocrlf", "core.eol", "core.filemode", "core.ignorecase", "core.symlinks", "core.precomposeunicode",
	"core.trustctime", "core.checkstat"}

// plainValue is what such a setting can be.
var plainValue = pattern.New(`^[A-Za-z]{0,16}$`)

// configure writes the settings that git reads: those of plainSettings as the
// user and the repository have them, and the user's own list of ignored files.
func (r *Repo) configure(ctx context.Context) error {
	var text strings.Builder
	text.WriteString("[core]\n\trepositoryformatversion = " + r.formatVersion() + "\n\tbare = false\n")
	if len(r.Commit) == 64 {
		text.WriteString("[extensions]\n\tobjectFormat = sha256\n")
	}
	// git needs its directory before it answers anything.
	file := filepath.Join(r.own, "config")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		return err
	}
	user, theirs := r.userSettings(ctx), r.repoSettings(ctx)
	r.Remote = theirs["remote.origin.url"]
	text.WriteString("[core]\n")
	for _, key := range plainSettings {
		value, given := theirs[key]
		if !given {
			value, given = user[key]
		}
		if given && plainValue.MatchString(value) {
			text.WriteString("\t" + strings.TrimPrefix(key, "core.") + " = " + value + "\n")
		}
	}
	if ignored := userIgnored(user); ignored != "" {
		text.WriteString("\texcludesFile = \"" + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(ignored) + "\"\n")
	}
	return os.WriteFile(file, []byte(text.String()), 0o600)
}

func (r *Repo) formatVersion() string {
	if len(r.Commit) == 64 {
		return "1"
	}
	return "0"
}

// repoSettings are the settings of the repository, as data: to list a file of
// settings runs nothing, and follows no include.
func (r *Repo) repoSettings(ctx context.Context) map[string]string {
	file := filepath.Join(r.common, "config")
	if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	out, err := r.run(ctx, r.own, r.environ(r.own), nil, "config", "--file", file, "--no-includes", "--null", "--list")
	if err != nil {
		return nil
	}
	return listed(out)
}

// userSettings are those that the user gave git outside of any repository.
func (r *Repo) userSettings(ctx context.Context) map[string]string {
	env := append(withoutGit(os.Environ()), "GIT_DIR="+r.own, "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	out, err := r.run(ctx, r.own, env, nil, "config", "--includes", "--null", "--list")
	if err != nil {
		return nil
	}
	return listed(out)
}

// listed reads what git config --null --list prints; the last of a key holds.
func listed(out []byte) map[string]string {
	found := map[string]string{}
	for entry := range strings.SplitSeq(string(out), "\x00") {
		key, value, given := strings.Cut(entry, "\n")
		if !given {
			value = "true"
		}
		found[strings.ToLower(key)] = value
	}
	return found
}

// userIgnored is the user's own list of files to ignore; empty: there is none.
func userIgnored(user map[string]string) string {
	home, _ := os.UserHomeDir()
	file, given := user["core.excludesfile"]
	switch below, tilde := strings.CutPrefix(file, "~/"); {
	case tilde:
		file = filepath.Join(home, below)
	case !given && os.Getenv("XDG_CONFIG_HOME") != "":
		file = filepath.Join(os.Getenv("XDG_CONFIG_HOME"), "git", "ignore")
	case !given:
		file = filepath.Join(home, ".config", "git", "ignore")
	}
	if info, err := os.Stat(file); err != nil || !filepath.IsAbs(file) || !info.Mode().IsRegular() {
		return ""
	}
	return file
}
