package remote

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/dlwb/dlwb/internal/waits"
	"github.com/dlwb/dlwb/remote/wire"
)

// scripts are what a node gets: POSIX sh, one file each. Each says in its first
// lines what it is, who calls it and what it leaves.
//
//go:embed scripts/*.sh
var scripts embed.FS

// install is the text that puts the scripts in place, and their version.
var install = sync.OnceValues(func() (program, version string) {
	var body strings.Builder
	var names []string
	hash := sha256.New()
	write := func(name, text string) {
		fmt.Fprintf(&body, "printf %%s %s >$new/%s || lost %s\n", quoteWord(text), name, name)
	}
	for name, text := range scriptTexts() {
		fmt.Fprintf(hash, "%s %d\n%s", name, len(text), text)
		write(name, text)
		names = append(names, "$new/"+name)
	}
	version = hex.EncodeToString(hash.Sum(nil))
	write("version", version+"\n")
	fmt.Fprintf(&body, "mv -f %s . && mv -f $new/version . || exit 74\n", strings.Join(names, " "))
	return programOf(installBegin, body.String()), version
})

// installBegin makes where the scripts wait until all of them are there. They
// are no secret, so that the shell may write them itself, with no process for
// each.
const installBegin = `mkdir -p "$HOME/.dlwb/bin" && cd "$HOME/.dlwb/bin" && new=.new.$$ && mkdir -p $new || exit 74
trap 'rm -rf $new' EXIT
lost() {
    echo "can't write $PWD/$1: is the disk full?" >&2
    exit 74
}`

// scriptTexts gives each script's name on the node and its text, by name.
func scriptTexts() iter.Seq2[string, string] {
	return func(yield func(name, text string) bool) {
		files, err := scripts.ReadDir("scripts")
		for _, file := range files {
			text, readErr := scripts.ReadFile("scripts/" + file.Name())
			err = errors.Join(err, readErr)
			if !yield(strings.TrimSuffix(file.Name(), ".sh"), string(text)) {
				return
			}
		}
		if err != nil {
			panic(err) // the files are part of this program
		}
	}
}

// Install puts the scripts into ~/.dlwb/bin. Where they already are, that is
// one round trip. Each comes into place whole, so that a run which is under way
// keeps the one it has.
func (n *Node) Install(ctx context.Context) error {
	if err := n.ask(ctx, wire.Install, wire.InstallRequest{}, nil); err != nil {
		return err
	}
	program, version := install()
	res, err := n.Exec(ctx, Cmd{Line: "cat ~/.dlwb/bin/version"})
	if err != nil {
		return n.wrap("install the scripts", err)
	}
	if strings.TrimSpace(string(res.Stdout)) == version {
		return nil
	}
	_, err = n.program(ctx, "install the scripts", program)
	return err
}

// Uninstall removes what dlwb has put on the node: ~/.dlwb with all runs and
// their logs, the authorized_keys line of the other nodes, and the given
// directories (relative to the home: "dlwb/CLUSTER"). It refuses while
// processes of a run are there: stop that first.
func (n *Node) Uninstall(ctx context.Context, dirs ...string) error {
	return n.ask(ctx, wire.Uninstall, wire.UninstallRequest{Dirs: dirs}, nil)
}

// programOf makes a text for sh of a beginning and a body. The shell executes
// nothing before it has read all of it: when the connection is lost half-way,
// nothing happens.
func programOf(begin, body string) string {
	return "main() {\numask 077\n" + begin + "\n" + body + "\n}\nmain\n"
}

// put is the part of a program that writes a file into the working directory,
// whole or not at all.
func put(name, text string) string {
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	sum := sha256.Sum256([]byte(text))
	end := "END_" + hex.EncodeToString(sum[:8]) // a line that the text can't hold
	return fmt.Sprintf("cat >%[1]s.$$ <<'%[2]s' && mv -f %[1]s.$$ %[1]s || exit 74\n%[3]s%[2]s\n",
		quoteWord(name), end, text)
}

// program runs a text by sh on the node, over its stdin, so that nothing of it
// shows in a process list.
func (n *Node) program(ctx context.Context, what, text string) (Result, error) {
	return n.must(ctx, what, "sh", text, 0)
}

// must runs a command whose failure is an error with what it said. All of ours
// may be run twice, so a lost connection is tried again.
func (n *Node) must(ctx context.Context, what, line, stdin string, quiet time.Duration) (Result, error) {
	var lost *LostError
	var late *waits.LateError
	for try := 0; ; try++ {
		res, err := n.Exec(ctx, Cmd{Line: line, Stdin: strings.NewReader(stdin), Quiet: quiet})
		if errors.As(err, &lost) && !errors.As(err, &late) && try < mostTries-1 && sleepBackoff(ctx, try) {
			continue
		}
		if err == nil && res.ExitCode != 0 {
			err = &ScriptError{ExitCode: res.ExitCode, Said: said(res)}
		}
		return res, n.wrap(what, err)
	}
}

// said is what a failed command had to say, in short.
func said(res Result) string {
	text := strings.TrimSpace(string(res.Stderr))
	if text == "" {
		text = strings.TrimSpace(string(res.Stdout))
	}
	if len(text) > 2000 {
		text = "…" + strings.ToValidUTF8(text[len(text)-2000:], "")
	}
	return text
}

// ScriptError says that one of our scripts failed on a node.
type ScriptError struct {
	ExitCode int
	Said     string // its last words; from the node, so not yet fit for a screen
}

func (e *ScriptError) Error() string {
	switch {
	case e.Said != "":
		return e.Said
	case e.ExitCode == 127:
		return "there is no sh on the node's PATH"
	}
	return fmt.Sprintf("the script ended with exit code %d and said nothing", e.ExitCode)
}
