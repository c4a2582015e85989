package hosts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/crypto/ssh"

	"github.com/dlwb/dlwb/sshkeys"
)

// vouchedFile is the name of dlwb's own file of the host keys that profiles
// have vouched for, in the form of known_hosts. It lets nobody in by itself: it
// tells what is seen for the first time, and holds later profiles to it.
const vouchedFile = "vouched_hosts"

// novelties are sentences about the hosts whose keys only a profile vouches for
// and that were never reached before; they are written down, so that each is
// said once.
func (p *Provider) novelties(machines []machine) (said []string, err error) {
	for _, m := range machines {
		text, key, isNew := m.novelty()
		if !isNew {
			continue
		}
		said = append(said, text)
		if p.options.Dir != "" {
			err = errors.Join(err, keepKey(p.options.Dir, vouchedFile, m, key))
		}
	}
	return said, err
}

// novelty says who vouches for the key of a host, where that is the profile
// alone and for the first time.
func (m machine) novelty() (text string, key ssh.PublicKey, isNew bool) {
	if m.Vouched == "" || m.Remembered == "" {
		return "", nil, false
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(m.HostKey))
	if err != nil {
		return "", nil, false
	}
	k, err := knownOf(m)
	if err != nil || len(k.before) > 0 {
		return "", nil, false
	}
	others := ""
	for _, known := range k.keys {
		if sshkeys.Same(known.key, key) {
			return "", nil, false // the user knows it too
		}
		others = fmt.Sprintf("; %s has another one, %s", known.where(), sshkeys.Text(known.key))
	}
	return fmt.Sprintf("%s has the host key %s: the profile vouches for it (machines.host_keys), and nothing else does%s. This is said once; another key of this host will be refused",
		m, sshkeys.Text(key), others), key, true
}

// keepKey adds the key of a machine to one of dlwb's own files of host keys.
func keepKey(dir, name string, m machine, key ssh.PublicKey) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s %s\n", m.keyName(), authorizedForm(key))
	return errors.Join(err, f.Sync(), f.Close())
}
