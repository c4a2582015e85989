package agentbin

import (
	"fmt"
	"strings"

	"github.com/dlwb/dlwb/internal/crash"
)

// Command lines for a login shell, whichever it is: one line, in which the part
// for sh stands in single quotes and holds none itself, no "!" and no newline.
// They begin with the shells' own exec, so that no shell stays behind.

// Words are made for one start: an agent begins with a line that holds both, one
// after the other, and so does what these lines print themselves. A shell that
// prints the command does not print that.
type Words struct{ First, Second string }

// The reports that the lines below print, each behind a line end and \001, and
// followed by the words, a blank, and more words to the end of the line.
const (
	None = "dlwb-none" // no agent is there; then the system, the processor and "gzip" if that is there
	Cant = "dlwb-cant" // it could not be put there; then why: see the constants below
)

// Why an agent could not be put somewhere.
const (
	CantMake = "make"    // the directory can't be made, or is somebody else's
	CantFill = "write"   // its bytes did not arrive whole: a full disk, for instance
	CantRun  = "execute" // programs on that file system are not executed
)

// Report is how a report begins.
func (w Words) Report(kind string) string { return "\n\x01" + kind + " " + w.First + w.Second + " " }

func (w Words) print(kind, more string) string {
	return fmt.Sprintf(`printf "\n\001%s %s%%s %s\n" %s`, kind, w.First, more, w.Second)
}

// Places are where an agent may lie, as sh writes it, the best first. Except for
// the first, they are a directory of the user's own in one that is everybody's.
var Places = []string{
	`$HOME/.dlwb/bin`, `/var/tmp/dlwb-$(id -u)`, `/dev/shm/dlwb-$(id -u)`, `/tmp/dlwb-$(id -u)`,
}

// search lets sh find its own programs whatever PATH the login has, and login
// gives that back to what is started.
const (
	search = `p="$PATH"; PATH="$PATH:/usr/local/bin:/usr/bin:/bin"; `
	login  = `PATH="$p"; `
)

// FindLine becomes one of some agents where one is there, in a mode such as
// serve, or prints the report None.
func FindLine(names []string, mode string, w Words) string {
	find := fmt.Sprintf(`t() { for a in %s; do [ -O "$1/$a" ] && [ -x "$1/$a" ] && { %sexec "$1/$a" %s %s %s; }; done; }; `+
		// The others need the user's id: three processes more.
		`t "%s"; for d in "%s"; do t "$d"; done; `, strings.Join(names, " "), login, mode, w.First, w.Second,
		Places[0], strings.Join(Places[1:], `" "`))
	if len(names) == 0 {
		find = ""
	}
	return line(search + find + `g=; command -v gzip >/dev/null && g=gzip; set -- "$(uname -s)" "$(uname -m)" "$g"; ` +
		w.print(None, "%s %s %s") + ` "$@"`)
}

// Source says how the bytes of an agent come.
type Source struct {
	// File is where they are already, as sh writes it; empty: they come on the
	// standard input.
	File string
	Size int  // how many come
	Gzip bool // they are compressed
}

// read is the command that gives the bytes of the program.
func (s Source) read() string {
	read := fmt.Sprintf("head -c %d", s.Size)
	if s.File != "" {
		read = fmt.Sprintf(`cat "%s"`, s.File)
	}
	if s.Gzip {
		read += " | gzip -dc"
	}
	return read
}

// PutLine puts an agent into one of the places and becomes it (serve), or prints
// the report Cant.
func PutLine(a *Agent, place string, from Source, w Words) string {
	// Whoever reads the report may be gone: first nothing is left.
	cant := func(why string) string { return `rm -f "$t" "$f"; ` + w.print(Cant, why) }
	return line(search + fmt.Sprintf(`u=$(umask); umask 077; d="%[1]s"; f="%[11]s"; t="$d/.%[2]s.$$"; `+
		`trap "rm -f \"\$t\" \"\$f\"" EXIT; trap "exit 1" HUP INT PIPE TERM; `+
		`if mkdir -p "$d" && [ -O "$d" ]; then `+
		`if %[3]s >"$t" && [ "$(wc -c <"$t")" -eq %[4]d ]; then `+
		`chmod 700 "$t"; if "$t" check %[5]s; then mv -f "$t" "$d/%[2]s" && rm -f "$f" && trap - EXIT HUP INT PIPE TERM && umask "$u" && `+
		login+`exec "$d/%[2]s" serve %[6]s %[7]s; fi; `+
		`%[8]s; else %[9]s; fi; else %[10]s; fi`,
		place, a.Name, from.read(), a.Size, a.Hash, w.First, w.Second, cant(CantRun), cant(CantFill), cant(CantMake), from.File))
}

func line(script string) string {
	if strings.ContainsAny(script, "'!\n") {
		panic("not fit for every login shell: " + script)
	}
	return "exec /bin/sh -c '" + script + "'"
}

// Why says why an agent could not be put somewhere: reason is that of the report
// Cant, said what the commands complained of.
func Why(reason, said string) string {
	why := map[string]string{
		CantMake: "the directory can't be made, or is not the user's own",
		CantFill: "it could not be written whole",
		CantRun:  "it is not executed there",
	}[strings.TrimSpace(reason)]
	if limit, is := crash.Why(said); is {
		return limit // its file system is not at fault
	}
	if said = strings.Join(strings.Fields(strings.ToValidUTF8(said, "?")), " "); said != "" {
		why += fmt.Sprintf(" (%.200s)", said)
	}
	return why
}
