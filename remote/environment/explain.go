package environment

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/internal/pattern"
)

// reason is one way in which an installation fails. The first whose pattern
// is found in the output is told; the order matters, because pip says "no
// matching distribution" also where it could not reach the index.
type reason struct {
	pattern *pattern.Pattern
	why     string // $1 is the pattern's first group
	next    string
}

var reasons = []reason{
	{
		pattern.New(`No space left on device|Disk quota exceeded|\[Errno (?:28|122)\]`),
		"the node's disk is full, or its quota is used up",
		"look with `df -h ~` on the node, and make room (pip's cache is ~/.cache/pip)",
	},
	{
		pattern.New(`(?s)Invalid requirement: (.*?)(?: \(from line (\d+) of|\n|$)`),
		"$line is not a requirement: $1",
		"correct it; one package a line, such as torch>=2.1",
	},
	{
		pattern.New(`(?:Could not open requirements file|No such file or directory): .*?'?([^\s']+)'?\s*$`),
		"$file names a file that is not on the node: $1",
		"write the packages into $file itself; code reaches the nodes only after the environment",
	},
	{
		pattern.New(`(?:Expected package name|Invalid URL given|Hint: .*requirement specifier|Could not (?:parse|detect requirement name))(.*)`),
		"a line of $file is not a requirement$1",
		"correct it; one package a line, such as torch>=2.1",
	},
	{
		pattern.New(`DO NOT MATCH THE HASHES`),
		"a downloaded package differs from the hash in $file",
		"if the package was updated on purpose, write its new hash",
	},
	{
		pattern.New(`NewConnectionError|ConnectTimeoutError|ReadTimeoutError|MaxRetryError|NameResolutionError|ProxyError|Temporary failure in name resolution|failed to lookup address information|client error \(Connect\)|Failed to fetch: \x60|Network is unreachable|Connection (?:refused|reset|aborted)|Read timed out|connection broken`),
		"the package index can't be reached from the node",
		"check the node's network, or name an index that it can reach (--index-url in $file)",
	},
	{
		pattern.New(`(?:SSLError|CERTIFICATE_VERIFY_FAILED)`),
		"the package index has a certificate that the node does not trust",
		"check the node's clock and certificates (ca-certificates)",
	},
	{
		pattern.New(`ResolutionImpossible|conflicting dependencies`),
		"the packages in $file exclude each other",
		"loosen one of the versions named above",
	},
	{
		pattern.New(`No matching distribution found for ([^\n]+)`),
		"there is no $1 for Python $version on this kind of machine",
		"correct the name or the version, or set environment.python to another Python",
	},
	{
		pattern.New(`Because (?:there (?:is|are) no versions? of )?(\S+) (?:was not found in the (?:package registry|provided package locations)|and you require)`),
		"there is no $1 for Python $version on this kind of machine",
		"correct the name or the version, or set environment.python to another Python",
	},
	{
		pattern.New(`No solution found when resolving dependencies`),
		"the packages in $file exclude each other, or are not for Python $version",
		"loosen one of the versions named above, or set environment.python to another Python",
	},
	{
		pattern.New(`Python\.h: No such file|command '[^']*(?:gcc|cc|c\+\+|g\+\+)[^']*' failed|error: Microsoft Visual|Unable to find .*compiler`),
		"a package has to be compiled, and the node lacks a compiler or Python's headers",
		"install them on the node (Debian: apt-get install -y build-essential python3-dev), or choose a version with a wheel",
	},
	{
		pattern.New(`ensurepip is not|No module named (?:'?ensurepip|'?pip\b)`),
		"Python $version on the node can't put pip into a virtual environment",
		"$venv",
	},
	{
		pattern.New(`Permission denied|Read-only file system`),
		"the node does not let dlwb write its directory",
		"look at who owns ~/dlwb and ~/.dlwb on the node",
	},
}

// explain fills in why a step failed and what to do. file is what the user
// calls the requirements.
func (f *Failure) explain(step string, n node, file string, base interpreter) {
	if file == "" {
		file = "requirements.txt"
	}
	said := strings.Join(decisive(f.LastLines), "\n")
	for _, r := range reasons {
		m := r.pattern.FindStringSubmatch(said)
		if m == nil {
			continue
		}
		words := strings.NewReplacer(
			"$line", lineOf(file, m), "$file", file, "$version", base.Version,
			"$venv", n.installVenv(base), "$1", group(m, 1))
		f.Why, f.Next = words.Replace(r.why), words.Replace(r.next)
		return
	}
	f.Why, f.Next = f.otherwise(step, file), "see its last lines, or run it by hand on the node"
}

// decisive are the lines that may tell why pip failed. It tells of each attempt
// to reach the index; where it gave up for another reason, an attempt that
// failed on the way is none.
func decisive(lines []string) []string {
	other := slices.ContainsFunc(lines, func(l string) bool {
		return strings.HasPrefix(l, "ERROR: ") && !unreached.MatchString(l)
	})
	if !other {
		return lines
	}
	return slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return strings.HasPrefix(l, "WARNING: Retrying ") })
}

// unreached is what pip says in the end also where the index was out of reach.
var unreached = pattern.New(`Could not find a version|No matching distribution|HTTPSConnectionPool|Could not install packages due to an OSError`)

// otherwise says what is known when no reason was recognised.
func (f *Failure) otherwise(step, file string) string {
	for i := len(f.LastLines) - 1; i >= 0; i-- {
		if text, ok := strings.CutPrefix(f.LastLines[i], "ERROR: "); ok {
			return "pip could not install " + file + ": " + text
		}
	}
	switch {
	case f.ExitCode < 0 || f.ExitCode == 137:
		return "the installation was killed on the node, which may have run out of memory"
	case step == "files":
		return fmt.Sprintf("dlwb's own files could not be written on the node (exit code %d)", f.ExitCode)
	case step == "venv":
		return fmt.Sprintf("the virtual environment could not be made (exit code %d)", f.ExitCode)
	}
	tool := "pip"
	if strings.Contains(f.Command, "uv pip install") {
		tool = "uv"
	}
	return fmt.Sprintf("%s could not install %s (exit code %d)", tool, file, f.ExitCode)
}

func lineOf(file string, match []string) string {
	if number := group(match, 2); number != "" {
		return file + ", line " + number
	}
	return "a line of " + file
}

func group(match []string, i int) string {
	if i < len(match) {
		return strings.TrimSpace(match[i])
	}
	return ""
}

// minor is 3.11 of 3.11.2.
func minor(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// credentials are what a URL may hold in front of the host.
var credentials = pattern.New(`(https?://)[^/@\s]+@`)

// readable makes the lines of a command fit to be shown: the file is called
// what the user calls it, and nobody's password is in them.
func readable(lines []string, path, file string) []string {
	shown := make([]string, len(lines))
	for i, l := range lines {
		if path != "" && file != "" {
			l = strings.ReplaceAll(l, path, file)
		}
		shown[i] = credentials.ReplaceAllString(l, "$1****@")
	}
	return shown
}
