package ec2

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/wholefile"
)

// The files in a life's directory.
const (
	keyFile       = "key"                // opens the nodes
	bootstrapFile = "bootstrap_host_key" // what the nodes are known by at first
)

// lifeKeys are the keys of one life.
type lifeKeys struct {
	file              string // of the private key that opens the nodes
	authorized        string // its public half
	bootstrap         string // the nodes' first host key, private
	bootstrapIdentity string // its public half
}

// keysOf reads the keys of a life, and makes those that are missing.
func keysOf(life cloud.Life) (lifeKeys, error) {
	k := lifeKeys{file: filepath.Join(life.Dir, keyFile)}
	comment := "dlwb " + life.Name
	_, public, err := makeKey(k.file, comment)
	if err != nil {
		return k, err
	}
	k.authorized = public
	k.bootstrap, k.bootstrapIdentity, err = makeKey(filepath.Join(life.Dir, bootstrapFile), comment+" first contact")
	return k, err
}

// makeKey makes an ed25519 key in OpenSSH form, unless path already holds one.
// The public half is as in authorized_keys.
func makeKey(path, comment string) (private, public string, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		b, err = newKey(comment)
		if err == nil {
			err = wholefile.Write(path, b, 0o600)
		}
	}
	if err != nil {
		return "", "", fmt.Errorf("make the key %s: %w", path, err)
	}
	signer, err := ssh.ParsePrivateKey(b)
	if err != nil {
		return "", "", fmt.Errorf("read the key %s: %w", path, err)
	}
	return string(b), strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey()))), nil
}

func newKey(comment string) ([]byte, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	block, err := ssh.MarshalPrivateKey(private, comment)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(block), nil
}
