//go:build unix

package local

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"net"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/crypto/ssh"
)

// grants is what a key may do.
type grants struct {
	pty, forward bool
	// command is run instead of whatever is asked for; forced tells an empty
	// one from none.
	forced  bool
	command string
}

type grantsKey struct{}

// grantsOf is what the key of a connection may do.
func grantsOf(conn *ssh.ServerConn) grants {
	if conn.Permissions == nil {
		return grants{}
	}
	may, _ := conn.Permissions.ExtraData[grantsKey{}].(grants)
	return may
}

// serverConfig lets in the cluster's key, and what the node's own
// authorized_keys names. Both that and the host key are read for each
// connection, so that either can be changed under a node that runs.
func (n *node) serverConfig() *ssh.ServerConfig {
	config := &ssh.ServerConfig{
		MaxAuthTries:  6,
		ServerVersion: "SSH-2.0-dlwb",
		PublicKeyCallback: func(meta ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			may, err := n.authorize(meta, key)
			if err != nil {
				return nil, err
			}
			return &ssh.Permissions{ExtraData: map[any]any{grantsKey{}: may}}, nil
		},
	}
	config.AddHostKey(n.shownKey())
	return config
}

// shownKey is the host key as it stands on the disk, or the last one that
// stood there: a node shows who it is also when its directory was deleted.
func (n *node) shownKey() ssh.Signer {
	key, err := readKey(filepath.Join(n.dir, hostKeyFile))
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil {
		n.hostKey = key
	}
	return n.hostKey
}

var errDenied = errors.New("this key opens nothing here")

// authorize decides what a key may do.
func (n *node) authorize(meta ssh.ConnMetadata, key ssh.PublicKey) (grants, error) {
	if meta.User() != n.intent.User {
		return grants{}, fmt.Errorf("there is no user %q here", meta.User())
	}
	if bytes.Equal(key.Marshal(), n.clusterKey.Marshal()) {
		return grants{pty: true, forward: true}, nil
	}
	file := filepath.Join(n.home, ".ssh", "authorized_keys")
	for _, p := range []string{n.home, filepath.Dir(file), file} {
		if err := trusted(p); err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				log.Printf("authorized_keys is not used: %v", err)
			}
			return grants{}, errDenied
		}
	}
	lines, err := os.ReadFile(file)
	if err != nil {
		return grants{}, errDenied
	}
	return authorizedBy(lines, key, meta.RemoteAddr())
}

// trusted checks what sshd calls StrictModes: a file that others may write
// grants nothing.
func trusted(path string) error {
	fi, err := os.Stat(path)
	if err != nil {
		return err
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok || (int(st.Uid) != os.Getuid() && st.Uid != 0) {
		return fmt.Errorf("%s belongs to another user", path)
	}
	if fi.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s may be written by others (chmod go-w %s)", path, path)
	}
	return nil
}

// authorizedBy looks for a key in the text of an authorized_keys file.
func authorizedBy(lines []byte, key ssh.PublicKey, from net.Addr) (grants, error) {
	for line := range bytes.Lines(lines) {
		listed, _, options, _, err := ssh.ParseAuthorizedKey(line)
		if err != nil || !bytes.Equal(listed.Marshal(), key.Marshal()) {
			continue
		}
		may, err := parseOptions(options, from)
		if err != nil {
			log.Printf("a line of authorized_keys is not used: %v", err)
			continue
		}
		return may, nil
	}
	return grants{}, errDenied
}

// parseOptions reads the options of a line. One that is not known may be a
// restriction, so that the line grants nothing, as with sshd.
func parseOptions(options []string, from net.Addr) (grants, error) {
	may := grants{pty: true, forward: true}
	for _, option := range options {
		name, value, _ := strings.Cut(option, "=")
		value = strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(value, `"`), `"`), `\"`, `"`)
		switch strings.ToLower(name) {
		case "restrict":
			may.pty, may.forward = false, false
		case "pty":
			may.pty = true
		case "no-pty":
			may.pty = false
		case "port-forwarding":
			may.forward = true
		case "no-port-forwarding":
			may.forward = false
		case "command":
			may.forced, may.command = true, value
		case "from":
			if !matchesFrom(value, from) {
				return grants{}, fmt.Errorf("it is for connections from %s, and this one is from %s", value, from)
			}
		case "agent-forwarding", "no-agent-forwarding", "x11-forwarding", "no-x11-forwarding", "user-rc", "no-user-rc":
			// A node has none of these.
		default:
			return grants{}, fmt.Errorf("the option %q is not known here", name)
		}
	}
	return may, nil
}

// matchesFrom checks an address against the list of a from= option: addresses,
// networks and patterns, each of which may be negated.
func matchesFrom(list string, from net.Addr) bool {
	tcp, ok := from.(*net.TCPAddr)
	if !ok {
		return false
	}
	matched := false
	for pattern := range strings.SplitSeq(list, ",") {
		pattern, negated := strings.CutPrefix(strings.TrimSpace(pattern), "!")
		if !matchesHost(pattern, tcp.IP) {
			continue
		}
		if negated {
			return false
		}
		matched = true
	}
	return matched
}

func matchesHost(pattern string, ip net.IP) bool {
	if _, network, err := net.ParseCIDR(pattern); err == nil {
		return network.Contains(ip)
	}
	ok, _ := path.Match(pattern, ip.String())
	return ok
}
