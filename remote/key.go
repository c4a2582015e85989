package remote

import (
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/dlwb/dlwb/internal/plainfile"
)

// GenerateKey makes an ed25519 key at path (0600, OpenSSH form, in a 0700
// directory) and returns its public half in authorized_keys form, with the
// comment. A key that is there already stays, and its public half is returned.
func GenerateKey(path, comment string) (pub string, err error) {
	if pub, err := publicKey(path, comment); !errors.Is(err, fs.ErrNotExist) {
		return pub, err
	}
	if err := writeKey(path, comment); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("make the ssh key %s: %w", path, err)
	}
	return publicKey(path, comment)
}

// keyMost bounds the file of a key.
const keyMost = 1 << 20

// publicKey reads the public half of a private key.
func publicKey(path, comment string) (string, error) {
	text, err := plainfile.Read(path, keyMost)
	if err != nil {
		return "", fmt.Errorf("read the ssh key: %w", err)
	}
	signer, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return "", fmt.Errorf("read the ssh key %s: %w; move it away to have a new one made", path, err)
	}
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
	return strings.TrimSpace(line + " " + oneLine(comment)), nil
}

// oneLine keeps a comment from becoming a second line of authorized_keys.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// writeKey makes a new key. It comes into place whole, by a link, which unlike
// a rename never replaces the key that somebody else made meanwhile.
func writeKey(path, comment string) error {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return err
	}
	block, err := ssh.MarshalPrivateKey(private, comment)
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(dir, ".key-*") // 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	_, err = tmp.Write(pem.EncodeToMemory(block))
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Link(tmp.Name(), path)
}
