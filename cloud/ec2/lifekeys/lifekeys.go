// Package lifekeys keeps the keys of one life of a cluster: the one that opens its
// nodes, and the one by which they are known at first.
package lifekeys

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

// Keys are the keys of one life.
type Keys struct {
	File              string // of the private key that opens the nodes
	Authorized        string // its public half
	Bootstrap         string // the nodes' first host key, private
	BootstrapIdentity string // its public half
}

// Of reads the keys of a life, and makes those that are missing.
func Of(life cloud.Life) (Keys, error) {
	k := Keys{File: filepath.Join(life.Dir, keyFile)}
	comment := "dlwb " + life.Name
	_, public, err := makeKey(k.File, comment)
	if err != nil {
		return k, err
	}
	k.Authorized = public
	k.Bootstrap, k.BootstrapIdentity, err = makeKey(filepath.Join(life.Dir, bootstrapFile), comment+" first contact")
	return k, err
}

// makeKey makes an ed25519 key in OpenSSH form, unless path already holds one.
// The public half is as in authorized_keys.
func makeKey(path, comment string) (private, public string, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		b, err = New(comment)
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

// New makes an ed25519 key in OpenSSH form.
func New(comment string) ([]byte, error) {
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
