//go:build unix

package local

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"os"

	"golang.org/x/crypto/ssh"
)

// makeKey makes an ed25519 key in OpenSSH form, unless path already holds one.
func makeKey(path, comment string) (ssh.Signer, error) {
	if signer, err := readKey(path); err == nil {
		return signer, nil
	} else if !os.IsNotExist(err) {
		return nil, err
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key %s: %w", path, err)
	}
	block, err := ssh.MarshalPrivateKey(private, comment)
	if err != nil {
		return nil, fmt.Errorf("make the key %s: %w", path, err)
	}
	if err := writeFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		return nil, err
	}
	return readKey(path)
}

// readKey reads a private key.
func readKey(path string) (ssh.Signer, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKey(b)
	if err != nil {
		return nil, fmt.Errorf("read the key %s: %w", path, err)
	}
	return signer, nil
}

// authorizedForm is a public key as it stands in authorized_keys, without the
// newline.
func authorizedForm(key ssh.PublicKey) string {
	b := ssh.MarshalAuthorizedKey(key)
	return string(b[:len(b)-1])
}
