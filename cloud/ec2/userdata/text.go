package userdata

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"path"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/dlwb/dlwb/internal/shellword"
)

//go:embed scripts/*.sh scripts/dlwb-lease.service
var scripts embed.FS

// dir is where everything lies on the machine.
const dir = "/var/lib/dlwb/"

// program is what the machine does first at each boot: it puts the lease in
// its place and starts it. Nothing waits for anything there: what comes after
// may depend on this.
func (b Boot) program() string {
	return "umask 022\nmkdir -p /var/lib/dlwb /etc/systemd/system\n" +
		put(dir+"settings", b.settings()) +
		put(dir+"lease", script("lease.sh")) +
		put(dir+"watch", script("watch.sh")) +
		put(dir+"rotate", script("rotate.sh")) + b.mounting() +
		put("/etc/systemd/system/dlwb-lease.service", script("dlwb-lease.service")) +
		start
}

// mounting has cloud-init mount the volumes at the end of each boot: one that exists
// is attached when the machine runs.
func (b Boot) mounting() string {
	if len(b.Volumes) == 0 {
		return ""
	}
	return "mkdir -p /var/lib/cloud/scripts/per-boot\n" + put(dir+"volumes", script("volumes.sh")) +
		"chmod 755 " + dir + "volumes\nln -sf " + dir + "volumes /var/lib/cloud/scripts/per-boot/dlwb-volumes\n"
}

// start begins the lease. What would upgrade packages by itself is kept from
// it: it holds dpkg's lock for minutes, and may change the GPU's driver under
// a run.
const start = `if [ -d /run/systemd/system ]; then
systemctl daemon-reload
systemctl enable --quiet dlwb-lease.service
systemctl start --no-block dlwb-lease.service
if command -v apt-get >/dev/null; then
set -- apt-daily.timer apt-daily-upgrade.timer apt-daily.service apt-daily-upgrade.service unattended-upgrades.service
systemctl mask --quiet "$@"
systemctl stop --no-block "$@"
fi
else
set -- sh -c 'until sh /var/lib/dlwb/lease run; do sleep 5; done'
if command -v setsid >/dev/null; then set -- setsid "$@"; else set -- nohup "$@"; fi
"$@" </dev/null >/dev/null 2>&1 &
fi
`

// settings is what the scripts read of this machine's lease.
func (b Boot) settings() string {
	l := b.Lease
	var text strings.Builder
	set := func(name, value string) { fmt.Fprintf(&text, "%s=%s\n", name, shellword.Quote(value)) }
	seconds := func(name string, d time.Duration) { set(name, fmt.Sprint(int64(d/time.Second))) }
	set("life", b.Life)
	set("cluster", b.Cluster)
	seconds("bootstrap", l.Bootstrap)
	seconds("idle_limit", l.Idle)
	seconds("lifetime", l.Lifetime)
	seconds("budget", l.Budget)
	if l.DrainLimit > 0 {
		seconds("drain_limit", l.DrainLimit)
	}
	if l.Drain.S3 != "" && len(l.Drain.Paths) > 0 {
		set("s3", strings.TrimRight(l.Drain.S3, "/"))
		clean := make([]string, len(l.Drain.Paths))
		for i, p := range l.Drain.Paths {
			clean[i] = path.Clean(p)
		}
		set("paths", strings.Join(clean, "\n"))
	}
	if len(b.Volumes) > 0 {
		lines := make([]string, len(b.Volumes))
		for i, v := range b.Volumes {
			lines[i] = v.line()
		}
		set("volumes", strings.Join(lines, "\n"))
	}
	if b.SpotNotice {
		set("spot", "1")
	}
	if b.IPv6 {
		set("imds", "http://[fd00:ec2::254]")
	} else {
		set("imds", "http://169.254.169.254")
	}
	return text.String()
}

// script is a text without its comments, its empty lines and its indents:
// user-data has little room. What it is, its first lines still say.
func script(name string) string {
	whole, err := scripts.ReadFile("scripts/" + name)
	if err != nil {
		panic(err) // the files are part of this program
	}
	var lean strings.Builder
	for i, line := range strings.Split(string(whole), "\n") {
		line = strings.TrimLeft(line, " ")
		if line != "" && (i < 2 || line[0] != '#') {
			lean.WriteString(line + "\n")
		}
	}
	return lean.String()
}

// put writes a file, whole or not at all. The end of the text is marked by a
// line that the text can't hold.
func put(file, text string) string {
	end := endOf(text)
	return fmt.Sprintf("cat >%[1]s.new <<'%[2]s' && mv -f %[1]s.new %[1]s\n%[3]s%[2]s\n", file, end, text)
}

// endOf is a line that a text can't hold.
func endOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "END_" + hex.EncodeToString(sum[:8])
}

// indent moves each line of a text to the right, as a block of YAML. One blank
// is enough for it.
func indent(text string) string {
	return " " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n ") + "\n"
}

// authorizedLine is a public key without options and comment.
func authorizedLine(s string) (string, error) {
	key, _, options, rest, err := ssh.ParseAuthorizedKey([]byte(s))
	if err != nil {
		return "", err
	}
	if len(options) > 0 || len(strings.TrimSpace(string(rest))) > 0 {
		return "", fmt.Errorf("it is more than one key")
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))), nil
}

// onlyPEM is the one block of a PEM text, and nothing that stands around it.
func onlyPEM(s string) (string, error) {
	block, _ := pem.Decode([]byte(s))
	if block == nil {
		return "", fmt.Errorf("the private host key is no PEM block")
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})), nil
}
