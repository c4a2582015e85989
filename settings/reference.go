package settings

import (
	"fmt"
	"strings"
)

// Reference is the page about the file of settings.
func Reference() string {
	var b strings.Builder
	b.WriteString(`# Your own settings

A profile can be a stranger's, so it may do only so much: it sends what lies below its own directory, and nothing
that looks like a secret. Only you can allow more: for one call by a flag (` + "`--allow-code`, `--send-secret`" + `), or for
good in ` + "`~/.config/dlwb/config.yaml`" + ` (below ` + "`$XDG_CONFIG_HOME`" + ` where that is set, on Windows below ` + "`%AppData%`" + `). No
profile and no other file of a project has a say in it. A file of settings that another user could change is
refused, and so is a key that is not known.

` + "```yaml" + `
code:
  allow: [~/code/common]
secrets:
  send: [certs/test.key]
  hold: ["customers*.csv"]
` + "```" + `

| key | what it says | example |
|---|---|---|
`)
	for _, k := range Keys {
		fmt.Fprintf(&b, "| `%s` | %s | `%s` |\n", k.Key, k.Doc, k.Example)
	}
	b.WriteString(`
A pattern holds in every project; one that begins with ` + "`/`" + ` is anchored at the code directory. What ` + "`send`" + ` names is
sent, also where ` + "`hold`" + ` names it. ` + "`.gitignore`, `.dlwbignore` and `code.exclude`" + ` still leave out what they leave out.
`)
	return b.String()
}
