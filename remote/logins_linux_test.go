package remote

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/loginrig"
	"github.com/dlwb/dlwb/internal/sample"
)

// loginShells are those that people have, by the name of their user here.
var loginShells = map[string]string{
	"sh": "/bin/sh", "bash": "/bin/bash", "dash": "/bin/dash", "zsh": "/usr/bin/zsh", "fish": "/usr/bin/fish", "tcsh": "/usr/bin/tcsh",
}

// startup is what a shell runs before a command that comes over ssh. sh and dash
// run nothing.
var startup = map[string]string{"bash": ".bashrc", "zsh": ".zshenv", "fish": ".config/fish/config.fish", "tcsh": ".tcshrc"}

func loginNode(t *testing.T, r *loginrig.Rig, user string) *Node {
	t.Helper()
	n := Open(Target{Name: user, Addr: r.Addr, User: user, HostKey: r.HostKey, KeyFile: r.KeyFile})
	t.Cleanup(func() { _ = n.Close() })
	return n
}

// leavesNothing holds that with the connection every process of a user is gone,
// and that no half of a file is left.
func leavesNothing(t *testing.T, r *loginrig.Rig, n *Node) {
	t.Helper()
	_ = n.Close()
	var left []loginrig.Process
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		left = slices.DeleteFunc(r.Processes(), func(p loginrig.Process) bool { return p.User != n.Name() })
		if len(left) == 0 {
			break
		}
	}
	if len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	for _, dir := range []string{r.Home(n.Name()), r.Path("/tmp"), r.Path("/var/tmp"), r.Path("/dev/shm")} {
		halves, _ := filepath.Glob(filepath.Join(dir, "dlwb-620[0-9][0-9]", ".*"))
		more, _ := filepath.Glob(filepath.Join(dir, ".dlwb", "bin", ".*"))
		halves = slices.DeleteFunc(append(halves, more...), func(path string) bool { return strings.HasSuffix(path, ".whole") })
		if len(halves) > 0 {
			t.Errorf("files are left: %v", halves)
		}
	}
}

func TestEveryLoginShellWorks(t *testing.T) {
	t.Parallel()
	loginrig.Need(t, "zsh", "fish", "tcsh")
	var users []loginrig.User
	for _, name := range slices.Sorted(maps.Keys(loginShells)) {
		users = append(users, loginrig.User{Name: name, Shell: loginShells[name]})
	}
	r := loginrig.Start(t, loginrig.Options{}, users...)
	for _, u := range users {
		t.Run(u.Name, func(t *testing.T) {
			t.Parallel()
			n := loginNode(t, r, u.Name)
			servesWell(t, n)
			servesWell(t, n)
			leavesNothing(t, r, n)
		})
	}
}

// noises are what startup files have printed before others' programs and broken
// them, in words that each of the shells understands.
var noises = map[string]string{
	"line":      `echo Welcome to the cluster`,
	"endless":   `printf "no newline at the end"`,
	"long":      `head -c 100000 /dev/zero | tr "\\0" x`,
	"binary":    `head -c 20000 /dev/urandom`,
	"lookalike": `printf "\\n\\001dlwb \\001agent \\001none deadbeef linux x86_64 gzip\\n\\000\\000\\001"`,
	"stderr":    `sh -c "echo something is deprecated >&2"`,
	"terminal":  `printf "\\033]0;title\\007\\033[?25l"`,
	"failure":   `ls /no/such/file`,
}

func TestWhatALoginPrintsIsNoPartOfWhatCommandsSay(t *testing.T) {
	t.Parallel()
	loginrig.Need(t, "zsh", "fish", "tcsh")
	var users []loginrig.User
	shells := slices.Sorted(maps.Keys(startup))
	each := sample.Of(t, 1, len(shells), "shells for each noise")
	for i, noise := range slices.Sorted(maps.Keys(noises)) {
		for j := range each {
			shell := shells[(i+j)%len(shells)]
			users = append(users, loginrig.User{Name: shell + "-" + noise, Shell: loginShells[shell],
				Files: map[string]string{startup[shell]: noises[noise] + "\n"}})
		}
	}
	users = append(users, loginrig.User{Name: "sshrc", Files: map[string]string{".ssh/rc": "echo this is sshrc; cat /etc/passwd\n"}})
	// The server's own: for everybody, before and after the login.
	banner := "cat >/etc/banner <<'E'\nAuthorized use only\nE\necho message of the day >/etc/motd\n" +
		"printf 'echo for everybody; printf unfinished\n' >/etc/ssh/sshrc\n"
	r := loginrig.Start(t, loginrig.Options{Config: []string{"Banner /etc/banner", "PrintMotd yes"}, Setup: banner}, users...)
	for _, u := range users {
		t.Run(u.Name, func(t *testing.T) {
			t.Parallel()
			n := loginNode(t, r, u.Name)
			servesWell(t, n)
			leavesNothing(t, r, n)
		})
	}
}

// fails gives the words of a connection that can't be served.
func fails(t *testing.T, n *Node) string {
	t.Helper()
	began := time.Now()
	res, err := n.Exec(loginContext(t), Cmd{Line: "echo it ran"})
	if err == nil {
		t.Fatalf("it ran: %q", res.Stdout)
	}
	t.Logf("after %.1f s: %v", time.Since(began).Seconds(), err)
	return err.Error()
}

func mustSay(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%q is not said in: %s", word, text)
		}
	}
}

func TestALoginThatCannotServeSaysWhy(t *testing.T) {
	t.Parallel()
	users := map[string]struct {
		loginrig.User
		says []string
	}{
		"nologin":  {loginrig.User{Shell: "/usr/sbin/nologin"}, []string{"This account is currently not available"}},
		"false":    {loginrig.User{Shell: "/bin/false"}, nil},
		"rbash":    {loginrig.User{Shell: "/bin/rbash"}, []string{"restricted"}},
		"sftponly": {loginrig.User{Config: []string{"ForceCommand internal-sftp"}}, nil},
		"git":      {loginrig.User{Config: []string{"ForceCommand echo This account serves git only"}}, []string{"This account serves git only"}},
		"exits":    {loginrig.User{Shell: "/bin/bash", Files: map[string]string{".bashrc": "echo not today; exit 3\n"}}, []string{"not today"}},
		"reads":    {loginrig.User{Shell: "/bin/bash", Files: map[string]string{".bashrc": "cat >/dev/null\n"}}, nil},
		"sleeps":   {loginrig.User{Shell: "/bin/bash", Files: map[string]string{".bashrc": "echo hold on; sleep 3600\n"}}, []string{"hold on"}},
	}
	var all []loginrig.User
	for name, u := range users {
		u.Name = name
		all = append(all, u.User)
	}
	r := loginrig.Start(t, loginrig.Options{}, all...)
	for name, u := range users {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := loginNode(t, r, name)
			n.bounds.Shell = 10 * time.Second // what hangs has said why before, on a busy machine too
			mustSay(t, fails(t, n), append(u.says, name)...)
			leavesNothing(t, r, n)
		})
	}
}

func TestAStartupFileMaySetPathAndUmaskAsItLikes(t *testing.T) {
	t.Parallel()
	loginrig.Need(t, "zsh")
	users := []loginrig.User{
		{Name: "nopath", Shell: "/bin/bash", Files: map[string]string{".bashrc": "PATH=/nonexistent\n"}},
		{Name: "unsetpath", Shell: "/usr/bin/zsh", Files: map[string]string{".zshenv": "unset PATH\n"}},
		{Name: "sshdpath", Config: []string{"SetEnv PATH=/nonexistent"}},
		{Name: "ifs", Shell: "/bin/bash", Files: map[string]string{".bashrc": "export IFS=abc ENV=/dev/tty POSIXLY_CORRECT=1 CDPATH=/tmp\nset -o noclobber -o nounset\n"}},
	}
	for _, mask := range []string{"000", "077", "777"} {
		users = append(users, loginrig.User{Name: "umask" + mask, Shell: "/bin/bash", Files: map[string]string{".bashrc": "umask " + mask + "\n"}})
	}
	r := loginrig.Start(t, loginrig.Options{}, users...)
	for _, u := range users {
		t.Run(u.Name, func(t *testing.T) {
			t.Parallel()
			n := loginNode(t, r, u.Name)
			res, err := n.Exec(loginContext(t), Cmd{Line: `echo "$HOME $(umask)"; exit 7`})
			if err != nil || res.ExitCode != 7 || !strings.HasPrefix(string(res.Stdout), "/home/"+u.Name+" ") {
				t.Errorf("exit code %d, stdout %.200q, stderr %.200q: %v", res.ExitCode, res.Stdout, res.Stderr, err)
			}
			if mask, is := strings.CutPrefix(strings.Replace(u.Name, "777", "077", 1), "umask"); is && !strings.HasSuffix(string(res.Stdout), " 0"+mask+"\n") {
				t.Errorf("the command has another umask: %q", res.Stdout)
			}
			// Again, over the agent that is there by now.
			m := loginNode(t, r, u.Name)
			again, err := m.Exec(loginContext(t), Cmd{Line: `echo "$HOME $(umask)"; exit 7`})
			if err != nil || string(again.Stdout) != string(res.Stdout) {
				t.Errorf("then %q, now %q: %v", res.Stdout, again.Stdout, err)
			}
			_ = m.Close()
			leavesNothing(t, r, n)
			for _, path := range agentsIn(t, r, u.Name) {
				if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
					t.Errorf("%s: %v, %v", path, info.Mode(), err)
				}
			}
		})
	}
}

// agentsIn are the agents of a user, wherever they are.
func agentsIn(t *testing.T, r *loginrig.Rig, user string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(r.Home(user), ".dlwb/bin/agent-*"))
	if err != nil {
		t.Fatal(err)
	}
	uid := strings.Split(r.Do("id -u "+user), "\n")[0]
	for _, dir := range []string{"/var/tmp", "/dev/shm", "/tmp"} {
		more, _ := filepath.Glob(r.Path(dir, fmt.Sprintf("dlwb-%s", uid), "agent-*"))
		found = append(found, more...)
	}
	return found
}
