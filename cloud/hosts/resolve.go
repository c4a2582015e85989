package hosts

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/about"
	"github.com/dlwb/dlwb/cloud/hosts/options"
	"github.com/dlwb/dlwb/sshkeys"
)

// machine is a host, and how to get there.
type machine struct {
	Entry    string       `json:"entry"` // as in the profile
	Alias    string       `json:"alias"` // its name for ssh
	HostName string       `json:"host_name"`
	Port     int          `json:"port"`
	User     string       `json:"user"`
	Keys     sshkeys.Keys `json:"keys"`
	// Known are the files to look for its host key in, and KeyAlias the name
	// to look for; empty: its host name and port.
	Known    []string `json:"known"`
	KeyAlias string   `json:"key_alias,omitempty"`
	// Vouched is the host key, or its fingerprint, that the profile gives.
	Vouched string `json:"vouched,omitempty"`
	// Remembered is the file of keys that profiles have vouched for earlier; it
	// is given where a profile vouches, not where a key was pinned by dlwb.
	Remembered string `json:"-"`
	// HostKey is the one that it showed and that was accepted.
	HostKey string    `json:"host_key,omitempty"`
	Jumps   []machine `json:"jumps,omitempty"`
	// Command is its ProxyCommand, with its tokens replaced: the line for a shell that
	// carries the bytes of the connection. Empty: it is reached by TCP, or by Jumps.
	Command string `json:"command,omitempty"`
	// Own: the user's own ssh leads to it, under Alias; nothing else of the way is known.
	Own bool `json:"own,omitempty"`
	// Door is where the others may reach it, as it says itself; none where dlwb dials.
	Door door `json:"door,omitzero"`
	// Option is what the profile says of this host alone.
	Option options.HostOption `json:"option,omitzero"`
	// Modules are loaded there before anything else of a run.
	Modules []string `json:"modules,omitempty"`
	// HomeOf is the number, from 1, of the first machine with the same home directory,
	// and CodeOf of the first with the same place for the code; 0: it is the first
	// itself, or the only one.
	HomeOf int `json:"home_of,omitempty"`
	CodeOf int `json:"code_of,omitempty"`
	// Beside: another cluster came first to the home directory.
	Beside bool `json:"beside,omitempty"`
	// Met: that was found out.
	Met bool `json:"met,omitempty"`
	// Revoked is the file of keys that no host may have; empty: there is none.
	Revoked string `json:"revoked,omitempty"`
	// Ignored are the places of the configuration that dlwb does not evaluate, and
	// Unheeded its settings that dlwb does not follow.
	Ignored, Unheeded []string `json:"-"`
}

func (m machine) addr() string {
	if m.Own {
		return m.HostName
	}
	return net.JoinHostPort(m.HostName, strconv.Itoa(m.Port))
}

// String is the machine in sentences: "gpu1 (ada@10.0.0.5)".
func (m machine) String() string {
	if m.Own {
		return m.Alias
	}
	where := m.User + "@" + m.HostName
	if m.Port != 22 {
		where += ":" + strconv.Itoa(m.Port)
	}
	if where == m.Alias || where == m.Entry {
		return where
	}
	return m.Alias + " (" + where + ")"
}

// login is the command with which a person reaches it.
func (m machine) login() string {
	s := "ssh "
	if m.Own {
		return s + m.Alias
	}
	if name, _, port := cutEntry(m.Entry); name != m.Entry {
		if port != "" {
			s += "-p " + port + " "
		}
		return s + strings.TrimSuffix(m.Entry, ":"+port)
	}
	return s + m.Entry
}

// resolver turns names into machines.
type resolver struct {
	config []line
	only   string // the one configuration that is read; empty: the usual ones
	extra  string // the file of confirmed host keys; empty: none
	before string // the file of those that profiles vouched for; empty: none
}

func (p *Provider) resolver() (*resolver, error) {
	only := p.options.Config
	if only == "" {
		only = os.Getenv("DLWB_SSH_CONFIG")
	}
	config, err := readConfigs(only)
	if err != nil {
		return nil, fmt.Errorf("read the ssh configuration: %w", err)
	}
	r := &resolver{config: config, only: only}
	if p.options.Dir != "" {
		r.extra, r.before = filepath.Join(p.options.Dir, confirmedFile), filepath.Join(p.options.Dir, vouchedFile)
	}
	return r, nil
}

// spec resolves the hosts that a spec asks for.
func (r *resolver) spec(s cloud.Spec) ([]machine, error) {
	own := about.Own[options.Machines](s.Own)
	if len(own.Hosts) == 0 {
		return nil, errors.New("no hosts are named; list them in machines.hosts")
	}
	if s.Count < 1 || s.Count > len(own.Hosts) {
		return nil, fmt.Errorf("count is %d, and machines.hosts names %d", s.Count, len(own.Hosts))
	}
	for host := range own.HostKeys {
		if !slices.Contains(own.Hosts, host) {
			return nil, fmt.Errorf("machines.host_keys names %s, which is not in machines.hosts", host)
		}
	}
	var all []machine
	for _, entry := range own.Hosts[:s.Count] {
		m, err := r.host(entry)
		if err != nil {
			return nil, fmt.Errorf("host %s: %w", entry, err)
		}
		m.Vouched, m.Option = own.KeyOf(entry), own.HostOptions[entry]
		m.Option.HostKey, m.Modules = "", own.Loads()
		if m.Vouched != "" {
			m.Remembered = r.before
		}
		all = append(all, m)
	}
	return all, nil
}

// jumpDepth is how many jump hosts may stand in a row.
const jumpDepth = 8

// machine resolves one entry: host, user@host, user@host:port, or the same as
// a ssh:// address.
func (r *resolver) machine(entry string, depth int) (machine, error) {
	name, who, port := cutEntry(entry)
	a := ask(r.config, name, who)
	m := machine{Entry: entry, Alias: name, HostName: a.hostName(), User: a.userName(), KeyAlias: a.get("hostkeyalias"), Ignored: a.ignored}
	if port == "" {
		port = a.get("port")
	}
	if port == "" {
		port = "22"
	}
	var err error
	if m.Port, err = strconv.Atoi(port); err != nil || m.Port < 1 || m.Port > 65535 {
		return m, fmt.Errorf("%q is no port", port)
	}
	if canonical := a.get("canonicalizehostname"); switched(canonical) || strings.EqualFold(canonical, "always") {
		m.Ignored = append(m.Ignored, "CanonicalizeHostname "+canonical)
	}
	m.Unheeded = a.unheeded()
	if m.Revoked, err = a.revoked(m); err != nil {
		return m, err
	}
	if m.KeyAlias, err = m.expand(m.KeyAlias); err != nil {
		return m, fmt.Errorf("HostKeyAlias: %w", err)
	}
	if m.Keys, err = a.keys(m); err != nil {
		return m, err
	}
	if m.Known, err = a.knownFiles(m); err != nil {
		return m, err
	}
	if r.extra != "" {
		m.Known = append(m.Known, r.extra)
	}
	if m.Command, err = m.command(a); err != nil {
		return m, err
	}
	m.Jumps, err = r.jumps(a.get("proxyjump"), depth)
	return m, err
}

// jumps resolves a ProxyJump: the first host of the list is reached as its own
// settings say, each further one through the one before it.
func (r *resolver) jumps(list string, depth int) ([]machine, error) {
	if list == "" || strings.EqualFold(list, "none") {
		return nil, nil
	}
	if depth >= jumpDepth {
		return nil, fmt.Errorf("more than %d jump hosts stand in a row; does a ProxyJump lead to itself?", jumpDepth)
	}
	var chain []machine
	for i, entry := range strings.Split(list, ",") {
		m, err := r.machine(strings.TrimSpace(entry), depth+1)
		if err != nil {
			return nil, fmt.Errorf("jump host %s: %w", entry, err)
		}
		if i == 0 {
			chain = m.Jumps
		} else {
			m.Command = "" // the one before it leads there
		}
		m.Jumps = nil
		chain = append(chain, m)
	}
	return chain, nil
}

// cutEntry cuts an entry into its parts.
func cutEntry(entry string) (name, user, port string) {
	entry = strings.TrimSuffix(strings.TrimPrefix(entry, "ssh://"), "/")
	if i := strings.LastIndexByte(entry, '@'); i >= 0 {
		user, entry = entry[:i], entry[i+1:]
	}
	if host, p, err := net.SplitHostPort(entry); err == nil {
		return host, user, p
	}
	return strings.Trim(entry, "[]"), user, ""
}

// hostName is where the host is, as far as the configuration was read.
func (a *answers) hostName() string {
	if name := a.get("hostname"); name != "" {
		return strings.NewReplacer("%%", "%", "%h", a.name).Replace(name)
	}
	return a.name
}

// userName is who logs in, as far as the configuration was read.
func (a *answers) userName() string {
	if a.user != "" {
		return a.user
	}
	if name := a.get("user"); name != "" {
		return name
	}
	return localUser()
}

func localUser() string {
	if name := os.Getenv("USER"); name != "" {
		return name
	}
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.Username[strings.LastIndexByte(u.Username, '\\')+1:] // on Windows: DOMAIN\name
}

// defaultKeys are what ssh tries when no IdentityFile is set.
var defaultKeys = []string{"~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa", "~/.ssh/id_ed25519_sk", "~/.ssh/id_ecdsa_sk"}

// switched reports whether a setting is on, in the words that ssh takes for it.
func switched(value string) bool {
	return strings.EqualFold(value, "yes") || strings.EqualFold(value, "true")
}

// keys are what to log in with.
func (a *answers) keys(m machine) (sshkeys.Keys, error) {
	files := a.values["identityfile"]
	if len(files) == 0 {
		files = defaultKeys
	}
	k := sshkeys.Keys{Agent: "SSH_AUTH_SOCK", Named: len(a.values["identityfile"]) > 0, OnlyFiles: switched(a.get("identitiesonly"))}
	for _, file := range files {
		path, err := m.expand(file)
		if err != nil {
			return k, fmt.Errorf("IdentityFile %s: %w", file, err)
		}
		if file != "none" && !slices.Contains(k.Files, path) {
			k.Files = append(k.Files, path)
		}
	}
	for _, file := range a.values["certificatefile"] {
		path, err := m.expand(file)
		if err != nil {
			return k, fmt.Errorf("CertificateFile %s: %w", file, err)
		}
		if file != "none" {
			k.Certificates = append(k.Certificates, path)
		}
	}
	switch socket := a.get("identityagent"); {
	case socket == "none":
		k.Agent = ""
	case strings.HasPrefix(socket, "$") && !strings.HasPrefix(socket, "${"):
		k.Agent = os.Getenv(socket[1:])
	case socket != "" && socket != "SSH_AUTH_SOCK":
		path, err := m.expand(socket)
		if err != nil {
			return k, fmt.Errorf("IdentityAgent %s: %w", socket, err)
		}
		k.Agent = path
	}
	return k, nil
}

// knownFiles are the files of host keys, the user's and the system's.
func (a *answers) knownFiles(m machine) ([]string, error) {
	var files []string
	for _, of := range []struct {
		key   string
		usual []string
	}{
		{"userknownhostsfile", []string{"~/.ssh/known_hosts", "~/.ssh/known_hosts2"}},
		{"globalknownhostsfile", []string{"/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"}},
	} {
		names := a.values[of.key]
		if names == nil {
			names = of.usual
		}
		for _, name := range names {
			path, err := m.expand(name)
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", of.key, name, err)
			}
			if name != "none" {
				files = append(files, path)
			}
		}
	}
	return files, nil
}

// expand puts values in the place of ~, of ssh's %-tokens and of ${VARIABLES}
// in a path.
func (m machine) expand(path string) (string, error) {
	host, _ := os.Hostname()
	short, _, _ := strings.Cut(host, ".")
	keyName := m.KeyAlias
	if keyName == "" {
		keyName = m.Alias
	}
	return replace(underHome(path), true, map[byte]string{
		'%': "%", 'd': home(), 'h': m.HostName, 'i': strconv.Itoa(os.Getuid()), 'k': keyName, 'L': short, 'l': host,
		'n': m.Alias, 'p': strconv.Itoa(m.Port), 'r': m.User, 'u': localUser(),
	})
}

// replace puts values in the place of %-tokens, and of ${VARIABLES} where those are to
// be replaced.
func replace(text string, variables bool, tokens map[byte]string) (string, error) {
	var b strings.Builder
	rest := text
	for {
		i := strings.IndexAny(rest, "%$")
		if i < 0 {
			return b.String() + rest, nil
		}
		b.WriteString(rest[:i])
		rest = rest[i:]
		switch end := strings.IndexByte(rest, '}'); {
		case variables && strings.HasPrefix(rest, "${") && end > 0:
			b.WriteString(os.Getenv(rest[2:end]))
			rest = rest[end+1:]
		case rest[0] == '$':
			b.WriteByte('$')
			rest = rest[1:]
		case len(rest) < 2:
			return "", errors.New("a % stands at the end")
		default:
			value, ok := tokens[rest[1]]
			if !ok {
				return "", fmt.Errorf("the token %%%c is not supported", rest[1])
			}
			b.WriteString(value)
			rest = rest[2:]
		}
	}
}
