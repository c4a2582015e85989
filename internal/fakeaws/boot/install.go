package boot

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/internal/fakeaws"
	"github.com/dlwb/dlwb/internal/testprogram"
)

//go:embed shims/*.sh
var shimFiles embed.FS

// shims are the names under which each script stands in the node's PATH.
var shims = map[string][]string{
	"common":    {"common"},
	"sh":        {"sh"},
	"sudo":      {"sudo", "su", "runuser"},
	"id":        {"id"},
	"getent":    {"getent"},
	"chown":     {"chown", "chgrp"},
	"power":     {"shutdown", "poweroff", "halt"},
	"systemctl": {"systemctl"},
	"service":   {"service"},
	"stat":      {"stat"},
	"wall":      {"wall"},
	"refuse": {"reboot", "init", "telinit", "apt", "apt-get", "dpkg", "dnf", "yum", "snap", "useradd", "usermod",
		"mount", "umount", "mkfs", "sysctl", "modprobe"},
}

// install makes of a new node the machine that its user-data describes.
func (g *guest) install(c config, i fakeaws.Instance) error {
	if err := g.writeShims(); err != nil {
		return err
	}
	if err := g.authorize(append([]string{i.PublicKey}, c.Keys...)); err != nil {
		return err
	}
	return g.installHostKey(c.Host)
}

func (g *guest) writeShims() error {
	bin := filepath.Join(g.node, "bin")
	for script, names := range shims {
		text, err := shimFiles.ReadFile("shims/" + script + ".sh")
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := testprogram.Write(filepath.Join(bin, name), text, 0o755); err != nil {
				return err
			}
		}
	}
	facts := fmt.Sprintf("instance=%s\nguest=%s\nnode=%s\nuser=%s\nroot=%s\npower=%s\n",
		g.id, g.dir, g.node, g.user, g.rootHome(), g.rig.powerFile())
	return os.WriteFile(filepath.Join(bin, "guest"), []byte(facts), 0o644)
}

func (g *guest) rootHome() string {
	if g.user == "root" {
		return filepath.Join(g.node, "home")
	}
	return filepath.Join(g.dir, "root")
}

// authorize lets keys in, as the image and cloud-init do.
func (g *guest) authorize(keys []string) error {
	var lines strings.Builder
	for _, key := range keys {
		if key = strings.TrimSpace(key); key != "" {
			fmt.Fprintln(&lines, key)
		}
	}
	dir := filepath.Join(g.node, "home", ".ssh")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "authorized_keys"), []byte(lines.String()), 0o600)
}

// installHostKey gives the machine the host key of its user-data. Without one
// it has the one that the node has made.
func (g *guest) installHostKey(key hostKey) error {
	shown, path := filepath.Join(g.node, "host_key"), filepath.Join(g.dir, "ssh", "ssh_host_ed25519_key")
	if key.Private == "" {
		made, err := os.ReadFile(shown)
		if err != nil {
			return err
		}
		return os.WriteFile(path, made, 0o600)
	}
	if err := os.WriteFile(path, []byte(key.Private), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(path+".pub", []byte(strings.TrimSpace(key.Public)+"\n"), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(shown+".next", []byte(key.Private), 0o600); err != nil {
		return err
	}
	return os.Rename(shown+".next", shown)
}

// writeFiles writes what the user-data brings. What would lie outside of the
// machine's own directories is not written.
func (g *guest) writeFiles(files []file) {
	for _, f := range files {
		if err := g.writeFile(f); err != nil {
			g.say("write_files: %v", err)
		}
	}
}

func (g *guest) writeFile(f file) error {
	path := filepath.Clean(g.rewrite(f.Path))
	if !strings.HasPrefix(path, g.dir+"/") {
		return fmt.Errorf("%s is not a place that a machine of this rig has", f.Path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	var before []byte
	if f.Append {
		before, _ = os.ReadFile(path)
	}
	if err := testprogram.Write(path, append(before, g.rewrite(string(f.Content))...), f.Mode); err != nil {
		return err
	}
	return os.Chmod(path, f.Mode)
}

// enabledUnits is a script that starts what was enabled in an earlier boot.
func (g *guest) enabledUnits() string {
	entries, err := os.ReadDir(filepath.Join(g.dir, "systemd", "enabled"))
	if err != nil || len(entries) == 0 {
		return ""
	}
	line := "systemctl start"
	for _, e := range entries {
		line += " " + e.Name()
	}
	return line + "\n"
}

// guestPaths are the directories of a machine that a guest has of its own
// wherever they are named, also by the shims.
var guestPaths = regexp.MustCompile(`/var/lib/dlwb|/etc/ssh|/etc/systemd/system`)

// Rewritten in user-data only: the path of a guest's own home has such parts,
// and a program that names a terminal means that one.
var (
	runtime   = regexp.MustCompile(`/run/systemd/system`)
	homes     = regexp.MustCompile(`(^|[\s=:;&|"'(<>])(/home/\*|/home/[a-z][a-z0-9_-]*|/root\b)`)
	terminals = regexp.MustCompile(`/dev/pts\b`)
	// tools are programs by their full path, some of which would act on the
	// real machine.
	tools = regexp.MustCompile(`(^|[\s=:;&|"'(<>])((?:/usr)?/s?bin/[a-z]+)\b`)
)

const metadataAddress = "http://169.254.169.254"

// rewrite turns what user-data says of a whole machine into what it means for
// this one. The machine's one user lives in the node's home; it has a systemd,
// and nobody sits at a terminal of it: those of the real machine are others'.
func (g *guest) rewrite(text string) string {
	text = homes.ReplaceAllStringFunc(text, func(found string) string {
		part := homes.FindStringSubmatch(found)
		if part[2] == "/root" {
			return part[1] + g.rootHome()
		}
		return part[1] + filepath.Join(g.node, "home")
	})
	text = runtime.ReplaceAllString(text, filepath.Join(g.dir, "systemd", "runs"))
	text = terminals.ReplaceAllString(text, filepath.Join(g.dir, "pts"))
	text = guestPaths.ReplaceAllStringFunc(text, func(path string) string {
		return filepath.Join(g.dir, map[string]string{
			"/var/lib/dlwb": "lib", "/etc/ssh": "ssh", "/etc/systemd/system": "systemd",
		}[path])
	})
	text = tools.ReplaceAllStringFunc(text, func(found string) string {
		part := tools.FindStringSubmatch(found)
		return part[1] + g.ownTool(part[2])
	})
	return strings.ReplaceAll(text, metadataAddress, g.metadataURL())
}

// ownTool is the guest's own program in place of the machine's, where it has
// one.
func (g *guest) ownTool(path string) string {
	name := filepath.Base(path)
	for script, names := range shims {
		if script != "sh" && slices.Contains(names, name) {
			return filepath.Join(g.node, "bin", name)
		}
	}
	return path
}
