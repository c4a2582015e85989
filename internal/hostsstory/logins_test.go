//go:build linux

package hostsstory

import (
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/loginrig"
	"github.com/dlwb/dlwb/internal/sample"
)

// account is a host as somebody has it: a login of a real OpenSSH server.
type account struct {
	loginrig.User
	// ssh are more lines of its Host in ssh_config.
	ssh string
	// setup is run by root in the server's namespaces before it starts.
	setup string
	// machines and environment are what the profile has besides hosts.
	machines, environment string
	// refused are words of the plan, which says why it is no node; empty: the whole
	// life works.
	refused []string
	// says are words of the plan of one that works.
	says []string
	// ranks are words that its rank prints.
	ranks []string
}

const moduleFile = `mkdir -p /opt/lab/modules/python && printf '#%%Module1.0\nprepend-path PATH /opt/lab/bin\nsetenv LAB_MODULE loaded\n' >/opt/lab/modules/python/lab
mkdir -p /opt/lab/bin && ln -sf "$(readlink -f /usr/bin/python3)" /opt/lab/bin/python3
`

// accounts are the oddities, by the name of the host.
func accounts() map[string]account {
	bash := func(rc string) loginrig.User {
		return loginrig.User{Shell: "/bin/bash", Files: map[string]string{".bashrc": rc}}
	}
	all := map[string]account{
		"banner":      {User: loginrig.User{Config: []string{"Banner /etc/passwd"}}},
		"prints":      {User: bash("echo hello from .bashrc; printf unfinished\n")},
		"fishes":      {User: bash("case $- in *i*) ;; esac; [ -z \"$SSH_CONNECTION\" ] || [ -n \"$DLWB_ONCE\" ] || export DLWB_ONCE=1\nexport HISTTIMEFORMAT='%F %T ' LANG= PROMPT_COMMAND='echo prompt'\nunset LANG LC_ALL\n")},
		"background":  {User: bash("sleep 3600 &\n")}, // as one that starts an agent for keys
		"path":        {User: bash("PATH=/nonexistent\n")},
		"umask077":    {User: bash("umask 077\n")},
		"umask000":    {User: bash("umask 000\n")},
		"onesession":  {User: loginrig.User{Config: []string{"MaxSessions 1"}}},
		"alias":       {User: bash("alias ls='ls --color=always' rm='rm -i' cp='cp -i'\nset -o noclobber\nexport GREP_OPTIONS=--color=always POSIXLY_CORRECT=1\n")},
		"noexec":      {User: loginrig.User{Home: "noexec"}, says: []string{"reachable in"}},
		"sftponly":    {User: loginrig.User{Config: []string{"ForceCommand internal-sftp"}}, refused: []string{"sftponly", "next:"}},
		"forced":      {User: loginrig.User{Config: []string{"ForceCommand echo This account serves git only"}}, refused: []string{"This account serves git only"}},
		"nologin":     {User: loginrig.User{Shell: "/usr/sbin/nologin"}, refused: []string{"This account is currently not available"}},
		"exits":       {User: bash("echo not today; exit 3\n"), refused: []string{"exits"}},
		"readonly":    {User: loginrig.User{Home: "ro"}, refused: []string{"can't be written"}},
		"full":        {User: loginrig.User{Home: "size=300k"}, refused: []string{"disk is full"}},
		"linkedhome":  {setup: "mv /home/linkedhome /srv/linked && ln -s /srv/linked /home/linkedhome\n"},
		"spaces":      {setup: "mv /home/spaces '/home/has two spaces' && sed -i 's|:/home/spaces:|:/home/has two spaces:|' /etc/passwd\n"},
		"controlled":  {ssh: "ControlMaster auto\nControlPath ~/.ssh/cm-%C\nControlPersist 60\nServerAliveInterval 5\nForwardAgent no\nSetEnv LANG=C\nRequestTTY no\nLogLevel QUIET\n"},
		"nopython":    {environment: "{python: \"python9\"}", refused: []string{"python9", "is not on the node"}},
		"condanone":   {environment: "{conda: torch}", refused: []string{"there is no conda environment torch"}},
		"modulesnone": {machines: ", modules: nothing/1.0", refused: []string{"modul"}},
	}
	for shell, path := range map[string]string{"sh": "/bin/sh", "dash": "/bin/dash", "zsh": "/usr/bin/zsh", "fish": "/usr/bin/fish", "tcsh": "/usr/bin/tcsh"} {
		all["in"+shell] = account{User: loginrig.User{Shell: path}}
	}
	emods, _ := filepath.Glob("/usr/share/modules/init/sh")
	lmod, _ := filepath.Glob("/usr/share/lmod/lmod/init/sh")
	if len(emods)+len(lmod) > 0 { // make test installs one
		all["modules"] = account{machines: ", modules: python/lab", setup: moduleFile + "echo 'module use /opt/lab/modules' >/etc/profile.d/zz-lab.sh\n",
			says: []string{"/opt/lab/bin/python3"}, ranks: []string{"module loaded"}}
	}
	return all
}

// odd prints what a rank finds.
const odd = `import os, sys
print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"], "by", sys.executable, "module", os.environ.get("LAB_MODULE", "none"), flush=True)
print("ünïcode", os.path.expanduser("~"), flush=True)
open(os.path.join(os.environ["DLWB_RESULTS"], "result"), "w").write("from the run")
`

// Each oddity of a login is either no matter, from the plan to the results and the
// removal, or the plan says why it is no node: with the program that people run.
func TestWhateverALoginIsLikeItWorksOrThePlanSaysWhy(t *testing.T) {
	loginrig.Need(t, "zsh", "fish", "tcsh")
	all := accounts()
	var users []loginrig.User
	setup := "mkdir -p /srv && mount -t tmpfs -o mode=755 tmpfs /srv && mount -t tmpfs -o mode=755 tmpfs /opt\n"
	for _, name := range slices.Sorted(maps.Keys(all)) {
		u := all[name].User
		u.Name = name
		users = append(users, u)
		setup += all[name].setup
	}
	r := loginrig.Start(t, loginrig.Options{Setup: setup, NoSFTP: true}, users...)
	host, port, _ := net.SplitHostPort(r.Addr)
	dir := t.TempDir()
	known := fmt.Sprintf("[%s]:%s %s\n", host, port, r.HostKey)
	write(t, filepath.Join(dir, "known_hosts"), known)
	config := "Include more/*.conf\nMatch all\n  IdentityFile " + r.KeyFile + "\n  IdentitiesOnly yes\n  UserKnownHostsFile " + dir + "/known_hosts\n"
	var hosts strings.Builder
	for name, a := range all {
		fmt.Fprintf(&hosts, "Host %s\n  HostName %s\n  Port %s\n  User %s\n  %s\n", name, host, port, name, strings.ReplaceAll(strings.TrimSpace(a.ssh), "\n", "\n  "))
	}
	write(t, filepath.Join(dir, "config"), hosts.String()+config)
	limit := make(chan struct{}, 3)
	each := len(all) / sample.Of(t, len(all)/3, len(all), "kinds of logins")
	for i, name := range slices.Sorted(maps.Keys(all)) {
		if i%each != 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limit <- struct{}{}
			defer func() { <-limit }()
			all[name].live(t, r, name, filepath.Join(dir, "config"))
		})
	}
}

// live goes through the life of a cluster on one such host.
func (a account) live(t *testing.T, r *loginrig.Rig, name, config string) {
	environment := a.environment
	if environment == "" {
		environment = "system"
	}
	l := newLaptop(t, config, fmt.Sprintf("name: odd\nprovider: hosts\nmachines: {hosts: [%s]%s}\nenvironment: %s\nrun: {engine: plain, command: train.py}\n",
		name, a.machines, environment), odd)
	code, plan := l.do(time.Minute, "plan")
	for _, word := range append(slices.Clone(a.refused), a.says...) {
		if !strings.Contains(plan, word) {
			t.Errorf("the plan does not say %q:\n%s", word, plan)
		}
	}
	if len(a.refused) > 0 {
		if code == 0 {
			t.Errorf("the plan is fine:\n%s", plan)
		}
		if code, text := l.do(2*time.Minute, "run", "--down", "--plain"); code == 0 {
			t.Errorf("it ran:\n%s", text)
		}
		return
	}
	if code != 0 {
		t.Fatalf("the plan ends with %d:\n%s", code, plan)
	}
	code, text := l.do(4*time.Minute, "run", "--down", "--plain")
	if code != 0 {
		t.Fatalf("the run ends with %d:\n%s", code, text)
	}
	logs, _ := filepath.Glob(filepath.Join(l.home, "state", "runs", "*", "rank-0.log"))
	for _, word := range append([]string{"rank 0 of 1", "ünïcode"}, a.ranks...) {
		if log, err := os.ReadFile(strings.Join(logs, "")); !strings.Contains(string(log), word) {
			t.Errorf("the log has no %q: %q, %v", word, log, err)
		}
	}
	home, _ := filepath.Glob(filepath.Join(l.home, "state", "runs", "*", "results", "*", "result"))
	if got, err := os.ReadFile(strings.Join(home, "")); string(got) != "from the run" {
		t.Errorf("the results at home are %q: %q, %v", home, got, err)
	}
	if left := strings.TrimSpace(r.Do("ls -d ~" + name + "/.dlwb ~" + name + "/dlwb 2>/dev/null || true")); left != "" {
		t.Errorf("it has left %s", left)
	}
}
