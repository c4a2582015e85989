//go:build linux

package remote

import (
	"strings"
	"testing"
)

// A process in the middle of an exec has no environment: at the first look the
// ssh that tells the peers is nobody's, at the next it is supervise's.
func TestWhoHasNoEnvironmentYetIsAskedAgain(t *testing.T) {
	inEachShell(t, func(t *testing.T, b *box) {
		out := b.sh(`. "$HOME/.dlwb/bin/common"
run=$HOME
supervisor() { sup=40; }
proc_table() {
    echo look >>"$HOME/looks"
    looks=$(wc -l <"$HOME/looks")
    echo "process 40 1 40 S"; echo "role 40 supervise"
    echo "process 50 40 40 S"
    if [ "$looks" -eq 1 ]; then echo "blank 50"; else echo "role 50 supervise"; fi
    echo "process 60 40 40 S"; echo "cookie 60"
    [ ! -e "$HOME/cleared" ] || { echo "process 70 60 40 S"; echo "blank 70"; }
    echo "process 80 1 80 S"; echo "blank 80"
}
members | sort
echo "looks $(wc -l <"$HOME/looks")"
: >"$HOME/cleared"
members | sort`)
		lines := strings.Fields(strings.ReplaceAll(strings.TrimSpace(out), " ", "_"))
		got := strings.Join(lines, " ")
		want := "40_supervise 50_supervise 60_- looks_2 40_supervise 50_supervise 60_- 70_-"
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

// What tells a process from a later one of the same number is found behind its
// name, whatever that is.
func TestAProcessOfAnyNameIsKnownByItsBeginning(t *testing.T) {
	inEachShell(t, func(t *testing.T, b *box) {
		out := b.sh(`. "$HOME/.dlwb/bin/common"
odd=$HOME/$(printf 'a) Z 1\nb (')
cp /bin/sleep "$odd"
"$odd" 60 &
tries=0
until grep -q '^a)' /proc/$!/comm || [ $((tries += 1)) -gt 1000 ]; do :; done
born $! && echo "$born"
tr '\n' ' ' </proc/$!/stat | sed 's/.*) //' | cut -d ' ' -f 20
kill -KILL $!
wait
born $! || echo "dead$born"`)
		if got := strings.Fields(out); len(got) != 3 || got[0] != got[1] || got[2] != "dead" {
			t.Errorf("it says %q", out)
		}
	})
}
