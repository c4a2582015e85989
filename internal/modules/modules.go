// Package modules loads the modules of a machine (Environment Modules, Lmod) in sh.
package modules

import "github.com/dlwb/dlwb/internal/shellword"

// Line is a line of sh that loads modules; empty without any. Environment
// Modules and Lmod are functions of login shells: where the shell does not know them,
// what a login shell reads is read here too, which also says where a site's modules
// lie, and the PATH stays what it was besides. A file that ends the shell, as one that
// is left of a package and reads what is gone, is passed over.
func Line(names []string) string {
	if len(names) == 0 {
		return ""
	}
	line := `command -v module >/dev/null 2>&1 || {
dlwb_path=$PATH
dlwb_reads() { [ -r "$1" ] && [ "$(. "$1" >/dev/null 2>&1 </dev/null; echo yes)" = yes ]; }
if dlwb_reads /etc/profile; then . /etc/profile >/dev/null; else
for dlwb_f in /etc/profile.d/*.sh; do ! dlwb_reads "$dlwb_f" || . "$dlwb_f" >/dev/null; done
fi
for dlwb_f in /usr/share/lmod/lmod/init/sh /usr/share/modules/init/sh "${LMOD_PKG-/nonexistent}/init/sh" "${MODULESHOME-/nonexistent}/init/sh"; do
command -v module >/dev/null 2>&1 || ! dlwb_reads "$dlwb_f" || . "$dlwb_f" >/dev/null
done
PATH=$PATH:$dlwb_path
} 2>/dev/null
command -v module >/dev/null 2>&1 || { printf 'dlwb\tmodule\t\tthere is no module command\n'; exit 65; }
`
	for _, name := range names {
		word := shellword.Quote(name)
		// Environment Modules before version 5 end with 0 whatever happened: what is loaded is asked too.
		line += "dlwb_said=$(module load " + word + " 2>&1) && module load " + word + " >/dev/null 2>&1 || { printf 'dlwb\\tmodule\\t%s\\t%s\\n' " + word +
			` "$(printf '%s\n' "$dlwb_said" | tr '\n' ' ' | head -c 600)"; exit 65; }` + "\n" +
			"case $dlwb_said in *rror:*|*'nable to locate'*) printf 'dlwb\\tmodule\\t%s\\t%s\\n' " + word +
			` "$(printf '%s\n' "$dlwb_said" | tr '\n' ' ' | head -c 600)"; exit 65 ;; esac` + "\n"
	}
	return line
}
