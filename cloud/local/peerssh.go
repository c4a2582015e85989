//go:build unix

package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/dlwb/dlwb/sshconn"
)

// sshFailed is what ssh(1) exits with when it was not the command that failed.
const sshFailed = 255

// peerCall is a parsed command line of the peer ssh client.
type peerCall struct {
	key, user, host, command string
	port                     int
	knownHosts               []string
	timeout                  time.Duration
	noInput                  bool
}

// PeerSSHMain is the ssh client of a node, for machines that have none. It
// takes the options that dlwb uses from node to node, in the form of ssh(1). A
// host that is not in the known_hosts file is never accepted, and nothing is
// ever asked.
func PeerSSHMain(args []string) int {
	call, err := parsePeerCall(args)
	if err != nil {
		fmt.Fprintf(os.Stderr, "dlwb %s: %v\n", PeerSSHCommand, err)
		return sshFailed
	}
	code, err := call.run()
	if err != nil {
		fmt.Fprintf(os.Stderr, "dlwb %s: %s@%s port %d: %v\n", PeerSSHCommand, call.user, call.host, call.port, err)
	}
	return code
}

// parsePeerCall reads [-i KEY] [-p PORT] [-l USER] [-o K=V] … [user@]host command…
func parsePeerCall(args []string) (peerCall, error) {
	c := peerCall{port: 22, user: userName(), timeout: 30 * time.Second}
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		flag, value := args[0][:min(2, len(args[0]))], args[0][min(2, len(args[0])):]
		args = args[1:]
		if flag == "--" {
			break
		}
		if strings.Contains("-n -q -T -x -a -4", flag) && value == "" {
			c.noInput = c.noInput || flag == "-n"
			continue
		}
		if value == "" {
			if len(args) == 0 {
				return c, fmt.Errorf("%s wants a value", flag)
			}
			value, args = args[0], args[1:]
		}
		if err := c.option(flag, value); err != nil {
			return c, err
		}
	}
	if len(args) < 2 {
		return c, errors.New("usage: -i KEY -p PORT -o OPTION=VALUE… [user@]host command…")
	}
	c.host = args[0]
	if at := strings.LastIndexByte(c.host, '@'); at >= 0 {
		c.user, c.host = c.host[:at], c.host[at+1:]
	}
	c.command = strings.Join(args[1:], " ")
	if c.key == "" || len(c.knownHosts) == 0 || c.host == "" {
		return c, errors.New("a key (-i), a known hosts file (-o UserKnownHostsFile=…) and a host are needed")
	}
	return c, nil
}

func (c *peerCall) option(flag, value string) (err error) {
	switch flag {
	case "-i":
		c.key = value
	case "-l":
		c.user = value
	case "-p":
		if c.port, err = strconv.Atoi(value); err != nil || c.port < 1 || c.port > 65535 {
			return fmt.Errorf("%q is not a port", value)
		}
	case "-o":
		return c.setting(value)
	default:
		return fmt.Errorf("the option %s is not known here", flag)
	}
	return nil
}

// setting reads an -o option. Those that can only ask for what is done anyway
// are taken and forgotten.
func (c *peerCall) setting(s string) error {
	name, value, ok := strings.Cut(s, "=")
	if !ok {
		name, value, _ = strings.Cut(s, " ")
	}
	switch name = strings.ToLower(strings.TrimSpace(name)); name {
	case "userknownhostsfile":
		c.knownHosts = strings.Fields(value)
	case "connecttimeout":
		seconds, err := strconv.Atoi(value)
		if err != nil || seconds < 1 {
			return fmt.Errorf("ConnectTimeout=%q is not a number of seconds", value)
		}
		c.timeout = time.Duration(seconds) * time.Second
	case "stricthostkeychecking":
		if value != "yes" {
			return fmt.Errorf("StrictHostKeyChecking=%s: host keys are always checked here", value)
		}
	case "batchmode", "identitiesonly", "loglevel", "passwordauthentication", "kbdinteractiveauthentication",
		"globalknownhostsfile", "serveraliveinterval", "serveralivecountmax", "connectionattempts", "updatehostkeys", "forwardagent":
	default:
		return fmt.Errorf("the option %s is not known here", name)
	}
	return nil
}

// run connects, runs the command and returns its exit code.
func (c peerCall) run() (int, error) {
	key, err := readKey(c.key)
	if err != nil {
		return sshFailed, err
	}
	check, err := knownhosts.New(c.knownHosts...)
	if err != nil {
		return sshFailed, fmt.Errorf("read the known hosts: %w", err)
	}
	addr := net.JoinHostPort(c.host, strconv.Itoa(c.port))
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return sshFailed, err
	}
	client, err := sshconn.Handshake(ctx, c.host, conn, addr, &ssh.ClientConfig{
		User: c.user, Auth: []ssh.AuthMethod{ssh.PublicKeys(key)},
		HostKeyCallback: check, HostKeyAlgorithms: knownAlgorithms(check, addr, conn.RemoteAddr()),
	}, sshconn.Standard)
	if err != nil {
		return sshFailed, err
	}
	defer client.Close()
	return c.remote(client)
}

// remote runs the command on a connection. Input is copied beside it and not
// waited for: it may never end.
func (c peerCall) remote(client *sshconn.Conn) (int, error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	s, err := client.Session(ctx)
	if err != nil {
		return sshFailed, err
	}
	defer s.Close()
	s.Streams(nil, os.Stdout, os.Stderr)
	input, err := s.StdinPipe()
	if err != nil {
		return sshFailed, err
	}
	if err := s.Start(ctx, c.command); err != nil {
		return sshFailed, err
	}
	if c.noInput {
		_ = input.Close()
	} else {
		go func() {
			_, _ = io.Copy(input, os.Stdin)
			_ = input.Close()
		}()
	}
	err = s.Wait(ctx)
	if ctx.Err() != nil {
		return sshFailed, errors.New("interrupted")
	}
	var exit *ssh.ExitError
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &exit) && exit.Signal() == "":
		return exit.ExitStatus(), nil
	}
	return sshFailed, err
}

// knownAlgorithms asks the known hosts which kinds of key they have of a host.
// Without that a server with keys of several kinds may offer one that is not
// listed, which looks like an attack.
func knownAlgorithms(check ssh.HostKeyCallback, addr string, remote net.Addr) []string {
	var mismatch *knownhosts.KeyError
	if !errors.As(check(addr, remote, noKey{}), &mismatch) {
		return nil
	}
	var algorithms []string
	for _, known := range mismatch.Want {
		switch t := known.Key.Type(); t {
		case ssh.KeyAlgoRSA:
			algorithms = append(algorithms, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
		default:
			algorithms = append(algorithms, t)
		}
	}
	slices.Sort(algorithms)
	return slices.Compact(algorithms)
}

// noKey is a public key that is no host's.
type noKey struct{}

func (noKey) Type() string                        { return "none" }
func (noKey) Marshal() []byte                     { return []byte("none") }
func (noKey) Verify([]byte, *ssh.Signature) error { return errors.New("no key") }
