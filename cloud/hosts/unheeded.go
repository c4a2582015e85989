package hosts

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/dlwb/dlwb/internal/ownssh"
)

// notFollowed are settings by which ssh gets to a host in another way than dlwb, or proves
// more there, with the values by which they change nothing.
var notFollowed = map[string][]string{
	"addressfamily": {"any"}, "bindaddress": nil, "bindinterface": nil, "knownhostscommand": {"none"}, "pkcs11provider": {"none"}, "securitykeyprovider": {"internal"},
}

// unheeded are those of a host, as they stand in the configuration.
func (a *answers) unheeded() (all []string) {
	for key, plain := range notFollowed {
		if value := a.get(key); value != "" && !slices.Contains(plain, strings.ToLower(value)) {
			all = append(all, settingNames[key]+" "+value)
		}
	}
	slices.Sort(all)
	return all
}

// settingNames are their names as people write them.
var settingNames = map[string]string{"addressfamily": "AddressFamily", "bindaddress": "BindAddress", "bindinterface": "BindInterface",
	"knownhostscommand": "KnownHostsCommand", "pkcs11provider": "PKCS11Provider", "securitykeyprovider": "SecurityKeyProvider"}

// unheededText says so; empty: there are none.
func (m machine) unheededText() string {
	if len(m.Unheeded) == 0 {
		return ""
	}
	return "the ssh configuration sets what dlwb does not follow: " + strings.Join(m.Unheeded, ", ")
}

// revoked is the file of RevokedHostKeys; empty: there is none.
func (a *answers) revoked(m machine) (string, error) {
	file := a.get("revokedhostkeys")
	if file == "" || strings.EqualFold(file, "none") {
		return "", nil
	}
	path, err := m.expand(file)
	if err != nil {
		return "", fmt.Errorf("RevokedHostKeys %s: %w", file, err)
	}
	return path, nil
}

// readRevoked takes in the keys that no host may have. As for ssh, a file that can't be
// read lets no host through.
func (k *known) readRevoked(m machine) error {
	if m.Revoked == "" {
		return nil
	}
	text, err := readSSH(m.Revoked)
	if err != nil {
		return fmt.Errorf("read RevokedHostKeys: %w", err)
	}
	if bytes.HasPrefix(text, []byte("SSHKRL")) {
		return fmt.Errorf("RevokedHostKeys %s is a revocation list in ssh's own form, which dlwb does not read: %s%s in machines.hosts leaves that to your own ssh", m.Revoked, ownssh.Prefix, m.Alias)
	}
	num := 0
	for l := range bytes.Lines(text) {
		num++
		if key, _, _, _, err := ssh.ParseAuthorizedKey(l); err == nil {
			k.revoked = append(k.revoked, knownKey{key, m.Revoked, num})
		}
	}
	return nil
}
