package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/dlwb/dlwb/internal/testbed"
)

// The peers are used at their best: as many forks as nodes, connections kept
// open where they can, no work that nobody asked for.

// systemPython is where Debian's own packages are; another python3 may come
// before it on the PATH.
const systemPython = "/usr/bin/python3"

// ansible is a tuned Ansible: 64 forks, pipelining, no gathering of facts, the
// ControlPersist that it has by default.
type ansible struct {
	b    *bench
	net  network
	n    int
	dir  string
	env  []string
	gone string // why it can't run
}

func (b *bench) ansible(net network, n int) (*ansible, error) {
	a := &ansible{b: b, net: net, n: n, gone: absent("ansible-playbook")}
	a.dir = filepath.Join(b.dir, fmt.Sprintf("ansible-%s-%d", net.name, n))
	if _, err := b.file(filepath.Base(a.dir)+"/hosts", strings.Join(net.hosts(n), "\n")+"\n"); err != nil {
		return nil, err
	}
	config := fmt.Sprintf(`[defaults]
inventory = %[1]s/hosts
forks = 64
gathering = explicit
interpreter_python = %[3]s
host_key_checking = True
local_tmp = %[1]s/tmp
retry_files_enabled = False
deprecation_warnings = False
[ssh_connection]
pipelining = True
ssh_args = -F %[2]s -C -o ControlMaster=auto -o ControlPersist=60s
control_path_dir = %[1]s/cp
`, a.dir, b.bed.SSHConfig(), systemPython)
	path, err := b.file(filepath.Base(a.dir)+"/ansible.cfg", config)
	a.env = []string{"ANSIBLE_CONFIG=" + path, "HOME=" + a.dir, "ANSIBLE_NOCOWS=1"}
	return a, err
}

// cold ends the connections that Ansible keeps.
func (a *ansible) cold() error {
	sockets, err := filepath.Glob(filepath.Join(a.dir, "cp", "*"))
	for _, s := range sockets {
		_, _ = a.b.shell(nil, "ssh", "-o", "ControlPath="+s, "-O", "exit", "any")
		_ = os.Remove(s)
	}
	return err
}

// all runs a module on all nodes.
func (a *ansible) all(module, args string) error {
	out, err := a.b.shell(a.env, "ansible", "all", "-m", module, "-a", args)
	if got := strings.Count(out, " | CHANGED"); err == nil && got != a.n {
		return fmt.Errorf("ansible answered for %d of %d nodes: %.300s", got, a.n, out)
	}
	return err
}

// masters are OpenSSH connections that are kept open for others to use.
type masters struct {
	b    *bench
	net  network
	n    int
	dir  string
	gone string
}

func (b *bench) masters(net network, n int) *masters {
	return &masters{b: b, net: net, n: n, dir: filepath.Join(b.dir, "cm-"+net.name), gone: absent("ssh")}
}

// open makes the connections that are not there.
func (m *masters) open() error {
	if m.gone != "" {
		return nil
	}
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return err
	}
	return m.each(`[ -S "$dir/$h" ] || ssh -F "$cfg" -o ControlMaster=yes -o ControlPath="$dir/%n" -fN "$h" </dev/null >/dev/null 2>&1
ssh -F "$cfg" -o ControlPath="$dir/%n" -O check "$h" 2>/dev/null || { echo "no master to $h"; exit 1; }`)
}

// each runs a shell line with $h, $cfg and $dir for every host at once.
func (m *masters) each(line string) error {
	script := "cfg=$1 dir=$2; shift 2\nfor h; do (" + line + ") & done; wait"
	out, err := m.b.shell(nil, "sh", append([]string{"-c", script, "sh", m.b.bed.SSHConfig(), m.dir}, m.net.hosts(m.n)...)...)
	if err == nil && out != "" {
		err = errors.New(strings.TrimSpace(out))
	}
	return err
}

// run runs a line over all of them at once.
func (m *masters) run(line string) error {
	return m.b.sshAll([]string{"-o", "ControlPath=" + m.dir + "/%n"}, m.net.hosts(m.n), line)
}

func (m *masters) close() error {
	return m.each(`ssh -F "$cfg" -o ControlPath="$dir/%n" -O exit "$h" >/dev/null 2>&1`)
}

// sshAll runs a line by one ssh a host, all at once, as one does in a shell.
func (b *bench) sshAll(options, hosts []string, line string) error {
	script := `cfg=$1 line=$2; shift 2; fail=$(mktemp)
for h; do ssh -F "$cfg" ` + strings.Join(options, " ") + ` "$h" "$line" </dev/null || echo "$h" >>"$fail" & done; wait
[ ! -s "$fail" ]; r=$?; cat "$fail"; rm -f "$fail"; exit $r`
	out, err := b.shell(nil, "sh", append([]string{"-c", script, "sh", b.bed.SSHConfig(), line}, hosts...)...)
	if got := strings.Count(out, "\n"); err == nil && got < len(hosts) {
		return fmt.Errorf("ssh answered for %d of %d nodes", got, len(hosts))
	}
	return err
}

// pdsh runs a line by `pdsh -R ssh` with a fanout of all nodes.
func (b *bench) pdsh(net network, n int, line string) error {
	env := []string{"PDSH_SSH_ARGS_APPEND=-F " + b.bed.SSHConfig()}
	out, err := b.shell(env, "pdsh", "-R", "ssh", "-f", fmt.Sprint(n), "-w", strings.Join(net.hosts(n), ","), line)
	if got := strings.Count(out, "\n"); err == nil && got != n {
		return fmt.Errorf("pdsh answered for %d of %d nodes: %.300s", got, n, out)
	}
	return err
}

// fabricScript is a fabfile's worth of fabric: a group of threads.
const fabricScript = `import sys
from fabric import Config, ThreadingGroup
key, user, line = sys.argv[1:4]
group = ThreadingGroup(*sys.argv[4:], user=user, config=Config(lazy=True),
                       connect_kwargs={"key_filename": key, "look_for_keys": False, "allow_agent": False})
answers = group.run(line, hide=True)
print(sum(r.ok for r in answers.values()), "ok")
`

func fabricAbsent(b *bench) string {
	if _, err := b.shell(nil, systemPython, "-c", "import fabric"); err != nil {
		return "fabric is not installed (python3-fabric)"
	}
	return ""
}

func (b *bench) fabric(net network, n int, line string) error {
	args := []string{"-c", fabricScript, b.bed.KeyFile(), testbed.User, line}
	for i := range n {
		args = append(args, strings.TrimSuffix(net.addr(i), ":22"))
	}
	out, err := b.shell([]string{"HOME=" + b.dir}, systemPython, args...)
	if err == nil && !strings.Contains(out, fmt.Sprintf("%d ok", n)) {
		return fmt.Errorf("fabric answered for fewer than %d nodes: %.300s", n, out)
	}
	return err
}
