package remote

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
)

// rotateScript is on machines whose first host key came by user-data. It makes
// another one, and puts it in its place when it is told to.
const rotateScript = "/var/lib/dlwb/rotate"

// HostKey is the key that the node showed when it was last dialed, in
// authorized_keys form; empty before the first connection.
func (n *Node) HostKey() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.shown
}

// NewHostKey makes the node make a host key that never leaves it, unless it
// has, and returns the public half. The node goes on to show its old key.
func (n *Node) NewHostKey(ctx context.Context) (string, error) {
	out, err := n.rotate(ctx, "prepare")
	if err != nil {
		return "", err
	}
	key, _, _, rest, err := ssh.ParseAuthorizedKey(out)
	if err != nil || len(strings.TrimSpace(string(rest))) > 0 {
		return "", n.wrap("change the host key", fmt.Errorf("the node answered %q, and that is no key", brief(string(out))))
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))), nil
}

// UseNewHostKey makes the node show the key of NewHostKey from now on.
// Connections that are open stay.
func (n *Node) UseNewHostKey(ctx context.Context) error {
	_, err := n.rotate(ctx, "activate")
	return err
}

func (n *Node) rotate(ctx context.Context, what string) ([]byte, error) {
	line := AsRoot("sh " + rotateScript + " " + what)
	r, err := n.Exec(ctx, Cmd{Line: line})
	if err == nil && r.ExitCode != 0 {
		err = n.wrap("change the host key", fmt.Errorf("%q ended with %d: %s", line, r.ExitCode, brief(string(r.Stderr))))
	}
	return r.Stdout, err
}

// AsRoot is a command line that is run by root, whoever logs in: by sudo
// without a password where that is not root.
func AsRoot(line string) string {
	return `if [ "$(id -u)" = 0 ]; then ` + line + `; else sudo -n ` + line + `; fi`
}
