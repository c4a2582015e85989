package remote

import (
	"errors"

	"github.com/dlwb/dlwb/sshkeys"
)

// refused says why a login with these keys failed, and which other key could
// have been tried.
func refused(p *sshkeys.Proof) error {
	var text string
	switch len(p.Signers) {
	case 0:
		text = "there is no key to log in with"
	case 1:
		text = "the server did not accept the key"
	default:
		text = "the server accepted none of the keys"
	}
	if why, next := p.Missed(); why != "" {
		text += "; " + why + ": " + next
	}
	return errors.New(text)
}
