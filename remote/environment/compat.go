package environment

import (
	"context"
	"crypto/sha256"
	_ "embed" // the mend
	"encoding/hex"
	"fmt"

	"github.com/dlwb/dlwb/internal/shellword"
)

// sitecustomize mends PyTorch 1.13 on Python 3.11 while it is imported.
//
//go:embed scripts/sitecustomize.py
var sitecustomize string

// compatDir is below the home directory.
const compatDir = ".dlwb/compat"

// compatHead is the first line of the file on the node. It holds the digest of
// the rest, so that an older one is recognised and replaced.
func compatHead() string {
	sum := sha256.Sum256([]byte(sitecustomize))
	return "# dlwb compat " + hex.EncodeToString(sum[:8])
}

// mend puts sitecustomize on the node, unless it is there.
func (p preparer) mend(ctx context.Context, n node) error {
	if n.compat == compatHead() {
		return nil
	}
	line := fmt.Sprintf(`umask 077 && mkdir -p "$HOME/%[1]s" && cd "$HOME/%[1]s" &&
printf '%%s\n%%s' %[2]s %[3]s >.new.$$ && mv -f .new.$$ sitecustomize.py`,
		compatDir, shellword.Quote(compatHead()), shellword.Quote(sitecustomize))
	exit, _, errs, err := p.run.Exec(ctx, line)
	if err != nil {
		return fmt.Errorf("environment: writing ~/%s: %w", compatDir, err)
	}
	if exit != 0 {
		f := &Failure{Command: "write ~/" + compatDir + "/sitecustomize.py", ExitCode: exit, LastLines: lastLines(errs)}
		f.explain("files", n, "", interpreter{})
		return f
	}
	return nil
}
