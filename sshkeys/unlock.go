package sshkeys

import (
	"crypto/sha256"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/dlwb/dlwb/internal/plainfile"
)

// passphraseTries is how often a wrong passphrase is answered with the question
// again.
const passphraseTries = 3

// unlocked are the keys that a person has given the passphrase of. They stay in
// the memory of this process, so that a connection that is lost comes back
// without a question; they are written nowhere.
var unlocked = struct {
	sync.Mutex
	ask     func(file string, again bool) (passphrase []byte, ok bool)
	signers map[[sha256.Size]byte]ssh.Signer // by the file's content
	given   map[string]bool                  // files that nobody is asked about again
}{signers: map[[sha256.Size]byte]ssh.Signer{}, given: map[string]bool{}}

// AskWith sets who is asked for the passphrase of a key; again says that the
// last answer was wrong. One question is asked at a time. nil: nobody.
func AskWith(ask func(file string, again bool) (passphrase []byte, ok bool)) {
	unlocked.Lock()
	defer unlocked.Unlock()
	unlocked.ask = ask
	clear(unlocked.given)
}

// Unlock asks for the passphrases of the keys that could not be tried, after a
// login failed without them. It reports whether there is a key now that was
// not tried: then a further login may succeed. Of each key it asks once.
func (p *Proof) Unlock() bool {
	unlocked.Lock()
	defer unlocked.Unlock()
	fresh := false
	for _, file := range p.Locked {
		fresh = unlockFile(file) || fresh
	}
	return fresh
}

// unlockFile makes one key known; the caller holds the lock.
func unlockFile(file string) bool {
	text, err := plainfile.Read(file, keyMost)
	if err != nil {
		return false
	}
	id := sha256.Sum256(text)
	if unlocked.signers[id] != nil {
		return true // somebody else was asked meanwhile
	}
	if unlocked.ask == nil || unlocked.given[file] {
		return false
	}
	for try := range passphraseTries {
		passphrase, ok := unlocked.ask(file, try > 0)
		if !ok {
			break
		}
		signer, err := ssh.ParsePrivateKeyWithPassphrase(text, passphrase)
		clear(passphrase)
		if err == nil {
			unlocked.signers[id] = signer
			return true
		}
	}
	unlocked.given[file] = true
	return false
}

// wasUnlocked is the key in a text that a passphrase was given for; nil when
// none was.
func wasUnlocked(text []byte) ssh.Signer {
	unlocked.Lock()
	defer unlocked.Unlock()
	return unlocked.signers[sha256.Sum256(text)]
}
