package hosts

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/dlwb/dlwb/sshkeys"
)

// confirmedFile is the name of dlwb's own file of host keys, in the form of
// known_hosts.
const confirmedFile = "known_hosts"

// knownKey is a key of a known_hosts file.
type knownKey struct {
	key  ssh.PublicKey
	file string
	line int
}

func (k knownKey) where() string { return k.file + ":" + strconv.Itoa(k.line) }

// known is what is known of the keys of one host.
type known struct {
	name        string     // the host's name in these files
	vouched     string     // a key or fingerprint from the profile: then no other will do
	keys        []knownKey // that it has
	portless    []knownKey // that its name has on port 22: they prove it, and others do not disprove it
	authorities []knownKey // that certify its keys
	revoked     []knownKey // that nobody may have
	before      []knownKey // that a profile has vouched for earlier
	profiled    bool       // what vouches is the profile, and not the record of a cluster
}

// knownOf reads the files of host keys. Lines that can't be read are passed
// over, as ssh does.
func knownOf(m machine) (*known, error) {
	k := &known{name: m.keyName(), vouched: m.Vouched}
	for _, file := range m.Known {
		if err := k.read(file, m); err != nil {
			return nil, err
		}
	}
	if err := k.readRevoked(m); err != nil {
		return nil, err
	}
	if m.Remembered != "" {
		k.profiled = true
		earlier := &known{name: k.name}
		if err := earlier.read(m.Remembered, m); err != nil {
			return nil, err
		}
		k.before = earlier.keys
	}
	return k, nil
}

// read takes over what a file says of a host.
func (k *known) read(file string, m machine) error {
	text, err := readSSH(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the known host keys: %w", err)
	}
	plain := strings.ToLower(m.HostName)
	num := 0
	for l := range bytes.Lines(text) {
		num++
		marker, names, key, _, _, err := ssh.ParseKnownHosts(l)
		if err != nil {
			continue
		}
		at := knownKey{key, file, num}
		switch {
		case !namesHost(names, k.name) && (k.name == plain || m.KeyAlias != "" || !namesHost(names, plain)):
		case marker == "revoked":
			k.revoked = append(k.revoked, at)
		case marker == "cert-authority":
			k.authorities = append(k.authorities, at)
		case namesHost(names, k.name):
			k.keys = append(k.keys, at)
		default:
			k.portless = append(k.portless, at)
		}
	}
	return nil
}

// keyName is the name of a host in files of host keys.
func (m machine) keyName() string {
	name := strings.ToLower(m.HostName)
	switch {
	case m.KeyAlias != "":
		return strings.ToLower(m.KeyAlias)
	case m.Port != 22:
		return fmt.Sprintf("[%s]:%d", name, m.Port)
	}
	return name
}

// namesHost reports whether the first field of a line, cut at its commas, is
// about a host. Names may be hashed.
func namesHost(names []string, host string) bool {
	if len(names) == 1 && strings.HasPrefix(names[0], "|1|") {
		parts := strings.Split(names[0], "|")
		if len(parts) != 4 {
			return false
		}
		salt, err := base64.StdEncoding.DecodeString(parts[2])
		mac := hmac.New(sha1.New, salt)
		mac.Write([]byte(host))
		return err == nil && base64.StdEncoding.EncodeToString(mac.Sum(nil)) == parts[3]
	}
	for i, name := range names {
		names[i] = strings.ToLower(name)
	}
	return matchesList(names, host)
}

// modern are the algorithms of host keys, the preferred ones first.
var modern = []string{
	ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256,
}

// certified are those of certified host keys.
var certified = []string{
	ssh.CertAlgoED25519v01, ssh.CertAlgoECDSA256v01, ssh.CertAlgoECDSA384v01, ssh.CertAlgoECDSA521v01,
	ssh.CertAlgoRSASHA512v01, ssh.CertAlgoRSASHA256v01,
}

// algorithms are those of the keys that are known, so that a host with several
// shows one of them; all modern ones when none is known.
func (k *known) algorithms() []string {
	types := map[string]bool{}
	for _, key := range append(slices.Clone(k.keys), k.portless...) {
		types[key.key.Type()] = true
	}
	if k.vouched != "" {
		types = map[string]bool{}
		if key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(k.vouched)); err == nil {
			types[key.Type()] = true
		}
	}
	var list []string
	for _, algorithm := range modern {
		if types[algorithm] || types[ssh.KeyAlgoRSA] && strings.HasPrefix(algorithm, "rsa-") {
			list = append(list, algorithm)
		}
	}
	if len(k.authorities) > 0 && k.vouched == "" {
		list = append(slices.Clone(certified), list...)
	}
	if len(list) == 0 {
		return modern
	}
	return list
}

// errUnknown says that nothing is known of a key, for or against it.
var errUnknown = errors.New("the host key is not known")

// check decides whether a host may have the key that it shows. It returns the
// plain key, without its certificate.
func (k *known) check(shown ssh.PublicKey) (ssh.PublicKey, error) {
	key := shown
	cert, isCert := shown.(*ssh.Certificate)
	if isCert {
		key = cert.Key
	}
	same := func(known knownKey) bool {
		return sshkeys.Same(known.key, key) || isCert && sshkeys.Same(known.key, cert.SignatureKey)
	}
	if i := slices.IndexFunc(k.revoked, same); i >= 0 {
		return nil, fmt.Errorf("its key %s is revoked by %s", sshkeys.Text(key), k.revoked[i].where())
	}
	if k.vouched != "" {
		if k.vouches(key) {
			return key, k.asBefore(key)
		}
		return nil, &changedError{shown: sshkeys.Text(key), known: strings.TrimSpace(k.vouched)}
	}
	if isCert && k.certifies(cert) == nil || slices.ContainsFunc(append(slices.Clone(k.keys), k.portless...),
		func(known knownKey) bool { return sshkeys.Same(known.key, key) }) {
		return key, nil
	}
	if all := append(slices.Clone(k.keys), k.authorities...); len(all) > 0 {
		changed := &changedError{shown: sshkeys.Text(key), known: sshkeys.Text(all[0].key), where: all[0].where(), name: k.name, file: all[0].file}
		if isCert {
			changed.why = k.certifies(cert)
		}
		return nil, changed
	}
	return key, errUnknown
}

// asBefore refuses a key that a profile vouches for where the user knows another
// one of its kind, or where a profile vouched for another one before.
func (k *known) asBefore(key ssh.PublicKey) error {
	if !k.profiled {
		return nil
	}
	ofKind := slices.DeleteFunc(slices.Clone(k.keys), func(other knownKey) bool { return other.key.Type() != key.Type() })
	for i, known := range [][]knownKey{ofKind, k.before} {
		if len(known) == 0 || slices.ContainsFunc(known, func(other knownKey) bool { return sshkeys.Same(other.key, key) }) {
			continue
		}
		first := known[0]
		return &changedError{shown: sshkeys.Text(key), known: sshkeys.Text(first.key), where: first.where(), name: k.name, file: first.file, again: i == 1}
	}
	return nil
}

// vouches reports whether the profile names this key, or its fingerprint.
func (k *known) vouches(key ssh.PublicKey) bool {
	text := strings.TrimSpace(k.vouched)
	if want, _, _, _, err := ssh.ParseAuthorizedKey([]byte(text)); err == nil {
		return sshkeys.Same(want, key)
	}
	fields := strings.Fields(text)
	return len(fields) > 0 && fields[len(fields)-1] == ssh.FingerprintSHA256(key)
}

// certifies checks a certificate: the authority, the name in it, its time.
func (k *known) certifies(cert *ssh.Certificate) error {
	name := strings.Trim(k.name, "[]")
	if host, _, err := net.SplitHostPort(k.name); err == nil {
		name = host
	}
	checker := ssh.CertChecker{IsHostAuthority: func(authority ssh.PublicKey, _ string) bool {
		return slices.ContainsFunc(k.authorities, func(known knownKey) bool { return sshkeys.Same(known.key, authority) })
	}}
	return checker.CheckHostKey(net.JoinHostPort(name, "22"), nil, cert)
}

// changedError says that a host does not have the key that is known of it.
type changedError struct {
	shown, known string
	where        string // file:line of the known one; empty: the profile
	name, file   string
	why          error // what is wrong with its certificate; may be nil
	again        bool  // the profile vouches for the new key, and one did for the known one
}

func (e *changedError) Error() string {
	where := e.where
	if where == "" {
		where = "the profile"
	}
	text := fmt.Sprintf("the host key is not the known one: %s says %s, and it shows %s. Nothing was sent. "+
		"Either the machine was made anew, or somebody stands between", where, e.known, e.shown)
	if e.again {
		text += ". The profile vouches for the new key; one vouched for the known key before"
	}
	if e.why != nil {
		text += fmt.Sprintf(" (its certificate: %v)", e.why)
	}
	return text
}

// next is what to do when the machine was made anew.
func (e *changedError) next() string {
	if e.where == "" {
		return "compare with ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub on the machine; if that is its key, correct the profile"
	}
	then := "ssh there once"
	if e.again {
		then = "again"
	}
	return fmt.Sprintf("if the machine was made anew: ssh-keygen -R '%s' -f %s, then %s", e.name, e.file, then)
}

// confirmKey keeps a host key that a person has confirmed.
func confirmKey(dir string, m machine, key ssh.PublicKey) error {
	return keepKey(dir, confirmedFile, m, key)
}

func authorizedForm(k ssh.PublicKey) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k)))
}
