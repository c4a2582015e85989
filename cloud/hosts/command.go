package hosts

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/ownssh"
	"github.com/dlwb/dlwb/internal/programconn"
)

// commandName is what sentences call the program that leads to a host.
const commandName = "its ProxyCommand"

// wayCommand is the Way of a node to which a ProxyCommand leads, its own or that of the
// first jump host.
const wayCommand = "proxy-command"

// byCommand reports whether a ProxyCommand leads to a machine.
func (m machine) byCommand() bool {
	return m.Command != "" || len(m.Jumps) > 0 && m.Jumps[0].Command != ""
}

// noCommand refuses a machine that others are to be reached through, or whose node is
// not one of this provider, where a ProxyCommand leads to it.
func (m machine) noCommand() error {
	if m.Own {
		return errors.New("only dlwb itself can lead others through a host, not your own ssh: leave " + ownssh.Prefix + " out")
	}
	if !m.byCommand() {
		return nil
	}
	return errors.New("its ProxyCommand in the ssh configuration is not supported here; use ProxyJump")
}

// command is the ProxyCommand of a machine with its tokens replaced, those that
// ssh_config(5) allows there; empty: there is none.
func (m machine) command(a *answers) (string, error) {
	line := a.get("proxycommand")
	if line == "" || strings.EqualFold(line, "none") {
		return "", nil
	}
	if switched(a.get("proxyusefdpass")) {
		return "", errors.New("ProxyUseFdpass in the ssh configuration is not supported: a ProxyCommand has to carry the bytes")
	}
	for _, name := range []string{m.Alias, m.HostName, m.User} {
		if !shellSafe(name) {
			return "", fmt.Errorf("%q would stand in a ProxyCommand, where a shell reads it, and has characters that mean something there", name)
		}
	}
	line, err := replace(line, false, map[byte]string{'%': "%", 'h': m.HostName, 'n': m.Alias, 'p': strconv.Itoa(m.Port), 'r': m.User})
	if err != nil {
		return "", fmt.Errorf("ProxyCommand: %w", err)
	}
	return line, nil
}

// shellSafe reports whether a name is itself in a shell. Names come from profiles and
// from command lines; OpenSSH refuses such there since 9.6 (CVE-2023-51385).
func shellSafe(name string) bool {
	return name != "" && name[0] != '-' && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r == 0x7f || strings.ContainsRune("'`\"$\\;&<>|(){}*?[]!#~^", r)
	})
}

// startCommand connects over a command. As in OpenSSH the user's shell runs it, and is
// replaced by it.
func startCommand(ctx context.Context, line string) (net.Conn, error) {
	words := []string{os.Getenv("SHELL"), "-c", "exec " + line}
	switch {
	case runtime.GOOS == "windows":
		words = []string{"cmd", "/c", line}
	case words[0] == "":
		words[0] = "/bin/sh"
	}
	// The connection outlives the dial.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), words[0], words[1:]...)
	conn, err := programconn.Start(cmd, commandName, nil)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", commandName, err)
	}
	return conn, nil
}

// commanded is a node to which a ProxyCommand leads, by what the ssh configuration says
// now: the record of a cluster has no command.
func (p *Provider) commanded(n cloud.Node) (machine, error) {
	r, err := p.resolver()
	if err != nil {
		return machine{}, err
	}
	m, err := r.machine(n.ID, 0)
	if err != nil {
		return machine{}, fmt.Errorf("host %s: %w", n.ID, err)
	}
	m.Vouched = n.HostKey
	return m, nil
}

// Reach connects to the sshd of a node to which a ProxyCommand leads.
func (p *Provider) Reach(ctx context.Context, _ cloud.Cluster, n cloud.Node) (net.Conn, error) {
	if n.Way != wayCommand {
		return nil, fmt.Errorf("hosts are not reached by %q", n.Way)
	}
	m, err := p.commanded(n)
	if err != nil {
		return nil, err
	}
	calls := p.newCaller()
	_, via, err := calls.way(ctx, m)
	var conn net.Conn
	switch {
	case err != nil:
	case via != nil:
		conn, err = via.Dial(ctx, "tcp", m.addr())
	default:
		conn, err = calls.reach(ctx, m)
	}
	if err != nil {
		calls.close()
		return nil, err
	}
	return &passing{conn, calls}, nil
}

var _ cloud.Reacher = (*Provider)(nil)

// passing is a connection that needs those to the jump hosts on its way.
type passing struct {
	net.Conn
	calls *caller
}

// Close ends all of them.
func (c *passing) Close() error {
	err := c.Conn.Close()
	c.calls.close()
	return err
}
