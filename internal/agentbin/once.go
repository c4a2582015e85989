package agentbin

import "fmt"

// Moments are where an agent may lie while it is started once, as sh writes it. Hardened
// machines execute nothing in what everybody may write to; the home is the last, as it may
// be a slow one on the network.
var Moments = []string{`/dev/shm`, `${TMPDIR:-/tmp}`, `/tmp`, `/var/tmp`, `$HOME`}

// OnceLine starts an agent in a mode without leaving it there: its file is gone
// before it begins. Or it prints the report Cant.
func OnceLine(a *Agent, place, mode string, from Source, w Words) string {
	cant := func(why string) string { return w.print(Cant, why) }
	return line(search + fmt.Sprintf(`umask 077; trap "exit 1" HUP INT TERM; `+
		`if t=$(mktemp -d "%[1]s/dlwb-XXXXXXXX"); then trap "rm -rf \"$t\"" EXIT; `+
		`if %[2]s >"$t/%[11]s" && [ "$(wc -c <"$t/%[11]s")" -eq %[3]d ]; then `+
		`chmod 700 "$t/%[11]s"; if "$t/%[11]s" check %[4]s; then `+
		`exec 9<"$t/%[11]s"; rm -rf "$t"; trap - EXIT; `+login+`exec /proc/self/fd/9 %[5]s %[6]s %[7]s; fi; `+
		`%[8]s; else %[9]s; fi; else %[10]s; fi`,
		place, from.read(), a.Size, a.Hash, mode, w.First, w.Second, cant(CantRun), cant(CantFill), cant(CantMake), a.Name))
}
