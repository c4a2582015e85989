package tunnel

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/shellword"
	"github.com/dlwb/dlwb/internal/wholefile"
	"github.com/dlwb/dlwb/sshkeys"
)

// SSHConfig is what lets the user's own ssh reach the nodes of a cluster.
type SSHConfig struct {
	Cluster string `json:"cluster"`
	// File is for ssh -F. In it the nodes are also called node0, node1, …
	File  string   `json:"file"`
	Hosts []string `json:"hosts"` // the names that the Include line makes known
	Text  string   `json:"text"`  // what stands in File
}

// SSH writes what the user's own ssh needs to reach nodes.
type SSH struct {
	state string // the state directory
	find  func(cluster string) (name string, is cloud.Cluster, err error)
}

// NewSSH keeps its files in a state directory. Find turns what a person typed
// into a cluster that came up.
func NewSSH(state string, find func(cluster string) (name string, is cloud.Cluster, err error)) *SSH {
	return &SSH{state, find}
}

// dir holds, for each cluster, NAME.conf for the Include line, NAME.only for
// ssh -F, and NAME.hosts with the host keys.
func (s *SSH) dir() string { return filepath.Join(s.state, "ssh") }

func (s *SSH) file(cluster, kind string) string {
	return filepath.Join(s.dir(), cluster+"."+kind)
}

// Config writes the ssh configuration of a cluster anew and says what is in it.
func (s *SSH) Config(cluster string) (SSHConfig, error) {
	name, is, err := s.find(cluster)
	if err != nil {
		return SSHConfig{}, err
	}
	if err := s.Write(name, is); err != nil {
		return SSHConfig{}, fmt.Errorf("write the ssh configuration of cluster %s: %w", name, err)
	}
	made := SSHConfig{Cluster: name, File: s.file(name, "only")}
	for i, n := range is.Nodes {
		if n.Way == cloud.ByOwnSSH {
			continue // it has its own name there
		}
		made.Hosts = append(made.Hosts, fmt.Sprintf("%s-%d", name, i), fmt.Sprintf("%s.node%d", name, i))
	}
	text, err := os.ReadFile(made.File)
	made.Text = string(text)
	return made, err
}

// Write writes the ssh configuration of a cluster.
func (s *SSH) Write(cluster string, is cloud.Cluster) error {
	w := sshWriter{state: s.state, cluster: cluster, known: s.file(cluster, "hosts"), keyFile: is.KeyFile}
	for i, n := range is.Nodes {
		w.node(i, n)
	}
	const head = "# Written by dlwb, and removed with the cluster: what is changed here is lost.\n\n"
	return errors.Join(
		replaceChanged(s.file(cluster, "hosts"), w.keys.Bytes()),
		replaceChanged(s.file(cluster, "conf"), append([]byte(head), w.shared.Bytes()...)),
		replaceChanged(s.file(cluster, "only"), append([]byte(head), w.only.Bytes()...)))
}

// replaceChanged writes a file unless it is as it should be.
func replaceChanged(path string, text []byte) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, text) {
		return nil
	}
	return wholefile.Write(path, text, 0o600)
}

// Remove removes the ssh configuration of a cluster.
func (s *SSH) Remove(cluster string) error {
	var err error
	for _, kind := range []string{"conf", "only", "hosts"} {
		if e := os.Remove(s.file(cluster, kind)); !errors.Is(e, os.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// sshWriter puts the files together. What every Host says is said in full, so
// that a later "Host *" of the user's changes nothing of it.
type sshWriter struct {
	state                   string
	cluster, known, keyFile string
	keys, shared, only      bytes.Buffer
}

// party is a host as ssh needs to know it.
type party struct {
	alias   string // under which its key is known; "dlwb-" in front keeps it apart
	addr    string
	user    string
	hostKey []string
	keys    sshkeys.Keys
	keyFile string // of dlwb's own; empty: none
	via     string // the alias of the jump host before it; empty: none
	by      string // the command that connects to it; empty: ssh itself does
}

func (s *sshWriter) node(i int, n cloud.Node) {
	if n.Way == cloud.ByOwnSSH {
		for _, b := range []*bytes.Buffer{&s.shared, &s.only} {
			fmt.Fprintf(b, "# node%d is what your own configuration calls %s.\n\n", i, n.Called)
		}
		return
	}
	if !plainParty(n.Addr, n.User) || n.HostKey == "" ||
		slices.ContainsFunc(n.Jumps, func(j cloud.Jump) bool { return !plainParty(j.Addr, j.User) }) {
		return // a machine that is stopped has no address
	}
	via := ""
	for j, jump := range n.Jumps {
		alias := fmt.Sprintf("%s-%d-jump%d", s.cluster, i, j)
		s.host(alias, "", party{alias: alias, addr: jump.Addr, user: jump.User, hostKey: []string{jump.HostKey}, keys: jump.Keys, via: via})
		via = alias
	}
	alias := fmt.Sprintf("%s-%d", s.cluster, i)
	p := party{alias: alias, addr: n.Addr, user: n.User, hostKey: []string{n.HostKey, n.NextHostKey}, keys: n.Keys, keyFile: s.keyFile, via: via}
	if n.Way != "" {
		p.by = s.carrier(i)
	}
	s.host(fmt.Sprintf("%s %s.node%d", alias, s.cluster, i), fmt.Sprintf("node%d", i), p)
}

// host writes one Host with its key. The short name is for ssh -F only: other
// clusters have a node0 too.
func (s *sshWriter) host(names, short string, p party) {
	for _, key := range p.hostKey {
		if key != "" {
			fmt.Fprintf(&s.keys, "dlwb-%s %s\n", p.alias, key)
		}
	}
	text := s.settings(p)
	fmt.Fprintf(&s.shared, "Host %s\n%s\n", names, text)
	fmt.Fprintf(&s.only, "Host %s\n%s\n", strings.TrimSpace(short+" "+names), text)
}

// carrier is the command by which ssh reaches a node that TCP does not lead to:
// this program.
func (s *sshWriter) carrier(node int) string {
	exe, err := os.Executable()
	if err != nil {
		exe = "dlwb"
	}
	words := []string{exe, "ssh", "--stdio", s.cluster, strconv.Itoa(node)}
	if runtime.GOOS == "windows" {
		return `"` + strings.Join(words, `" "`) + `"`
	}
	return strings.ReplaceAll(shellword.Join(append([]string{"env", "DLWB_HOME=" + s.state}, words...)...), "%", "%%")
}

func (s *sshWriter) settings(p party) string {
	host, port, _ := net.SplitHostPort(p.addr)
	lines := [][2]string{
		{"HostName", host}, {"Port", port}, {"User", p.user}, {"HostKeyAlias", "dlwb-" + p.alias},
		{"UserKnownHostsFile", sshPath(s.known)}, {"GlobalKnownHostsFile", sshPath(os.DevNull)},
		{"StrictHostKeyChecking", "yes"}, {"UpdateHostKeys", "no"}, {"CheckHostIP", "no"},
		{"ForwardAgent", "no"},
	}
	if runtime.GOOS == "windows" {
		lines[5][1] = "none"
	}
	files := p.keys.Files
	if p.keyFile != "" {
		files = append([]string{p.keyFile}, files...)
	}
	for _, file := range files {
		if !keyIsThere(file) {
			continue // ssh would complain of each
		}
		lines = append(lines, [2]string{"IdentityFile", sshPath(file)})
	}
	for _, file := range p.keys.Certificates {
		lines = append(lines, [2]string{"CertificateFile", sshPath(file)})
	}
	only := "no"
	if p.keys.OnlyFiles || p.keys.Agent == "" && len(files) > 0 {
		only = "yes"
	}
	lines = append(lines, [2]string{"IdentitiesOnly", only})
	switch p.keys.Agent {
	case "":
		lines = append(lines, [2]string{"IdentityAgent", "none"})
	case "SSH_AUTH_SOCK": // ssh's own habit
	default:
		lines = append(lines, [2]string{"IdentityAgent", sshPath(p.keys.Agent)})
	}
	// Of ProxyJump and ProxyCommand the one that comes first counts.
	switch {
	case p.by != "":
		lines = append(lines, [2]string{"ProxyCommand", p.by})
	case p.via != "":
		lines = append(lines, [2]string{"ProxyJump", p.via})
	default:
		lines = append(lines, [2]string{"ProxyJump", "none"})
	}
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "    %s %s\n", l[0], l[1])
	}
	return b.String()
}

// plainParty reports whether an address and a user can stand in a configuration
// as they are. One line that ssh can't read would keep it from every host.
func plainParty(addr, user string) bool {
	host, port, err := net.SplitHostPort(addr)
	return err == nil && host != "" && port != "" && user != "" && !strings.ContainsFunc(addr+user, func(r rune) bool {
		return r <= ' ' || r == 0x7f || strings.ContainsRune(`"'#%$\`+"`", r)
	})
}

// keyIsThere reports whether a key can be named to ssh: the private one, or the
// public one of a key that the agent holds.
func keyIsThere(file string) bool {
	for _, path := range []string{file, file + ".pub"} {
		if _, err := os.Stat(path); err == nil {
			return true
		}
	}
	return false
}

// sshPath is a path as ssh reads it: blanks need quotation marks, and % begins
// a token.
func sshPath(path string) string {
	return `"` + strings.NewReplacer("%", "%%", `"`, `\"`).Replace(filepath.ToSlash(path)) + `"`
}
